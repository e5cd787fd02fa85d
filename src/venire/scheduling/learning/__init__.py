"""How do competences come to be known? First learn, or learn while serving."""
