"""Answer queries on a key expression.

python examples/queryable.py --key demo/example/queryable --value "21.5"
"""

from __future__ import annotations

from common import arguments, configuration, library, say


def main() -> None:
    args = arguments(
        __doc__,
        count=0,
        key={"default": "demo/example/queryable"},
        value={"default": "21.5"},
        complete={"action": "store_true", "help": "nobody else need be asked"},
    )
    zenoh = library(args)

    with (
        zenoh.open(configuration(zenoh, args)) as session,
        session.declare_queryable(args.key, complete=args.complete) as queryable,
    ):
        say(f"queryable on {queryable.key_expr}")
        for number, query in enumerate(queryable, 1):
            with query:
                payload = "" if query.payload is None else f" with {query.payload.to_string()}"
                say(f"query {query.selector}{payload}")
                if "error" in query.parameters:
                    query.reply_err(query.parameters["error"], encoding=zenoh.Encoding.TEXT_PLAIN)
                else:
                    query.reply(args.key, args.value, encoding=zenoh.Encoding.TEXT_PLAIN)
            if number == args.count:
                break


if __name__ == "__main__":
    main()
