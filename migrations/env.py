"""How Alembic is run: on the one connection that the store hands over, inside its transaction.

There is no alembic.ini and no URL here: `receipts db upgrade` is the way in.
"""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run: receipts db upgrade")

context.configure(
    connection=connection,
    target_metadata=context.config.attributes.get("target_metadata"),
    # SQLite cannot alter most things in place: tables are made again and their rows copied.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
