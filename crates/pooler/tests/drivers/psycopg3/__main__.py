"""What psycopg 3 sees of a PostgreSQL, one line a step: straight and through a gate the lines must be the same.

Two connections, `a` and `b`, take turns, so that behind a gate neither stays with one server connection.
"""

import session
import statements
import transactions
from common import connect

with connect() as a, connect() as b:
    for step in statements.STEPS + transactions.STEPS + session.STEPS:
        print(f"{step.__name__}: {step(a, b)!r}", flush=True)
