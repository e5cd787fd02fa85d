"""How competences are learned: in a phase before serving, or while serving."""
