"""The routes, one module for each part of the API; each adds its own to the application."""
