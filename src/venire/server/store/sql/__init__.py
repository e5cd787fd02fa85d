"""The stores in SQLite and PostgreSQL: tables, statements, migrations."""
