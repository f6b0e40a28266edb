"""Reading YAML from untrusted files: plain values only, with limits on their number."""

from __future__ import annotations

from typing import Any

from jedax.errors import JedaxError, fail

# For comparison: a maze of 20,000 walls has half a million characters.
_MOST_CHARACTERS = 2_000_000
_MOST_VALUES = 500_000
_MOST_DIGITS = 80  # of whole numbers: 64 bits in base 2, with underscores


def read_yaml(text: str, where: str) -> Any:
    """Return the value of a YAML text: numbers, strings, dates, lists and mappings; no tags that run code.

    Texts that are too long or too deeply nested, or have too many values after their aliases are expanded, are refused.
    """
    import yaml

    if len(text) > _MOST_CHARACTERS:
        raise _refused(where, f"at most {_MOST_CHARACTERS:,} characters of YAML", f"{len(text):,}")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if _size(node, {}) > _MOST_VALUES:
            raise _refused(where, f"at most {_MOST_VALUES:,} values", "more, by aliases")
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        at = f"a syntax error in line {place.line + 1}" if place else "a syntax error"
        raise _refused(where, "YAML", at) from None
    except RecursionError:
        raise _refused(where, "YAML", "values nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # such as dates that do not exist
        if isinstance(error, JedaxError):
            raise
        raise _refused(where, "YAML", f"an invalid value ({error})") from None


def _refused(where: str, expected: str, received: str) -> JedaxError:
    return fail(where, expected=expected, received=received, remedy="correct the file")


def _size(node: Any, known: dict[int, int]) -> int:
    """Return the number of values of a node with its aliases expanded, at most a cap, which also stands for cycles."""
    if id(node) not in known:
        known[id(node)] = 10 * _MOST_VALUES
        children = getattr(node, "value", None)
        if isinstance(children, str):
            children.encode()  # raises for "\ud800", which is YAML, but no text
            if str(node.tag).endswith(":int") and len(children) > _MOST_DIGITS:
                raise ValueError(f"a whole number of {len(children)} digits")
        parts = children if isinstance(children, list) else []
        inner = (part for pair in parts for part in (pair if isinstance(pair, tuple) else (pair,)))
        known[id(node)] = min(1 + sum(_size(part, known) for part in inner), 10 * _MOST_VALUES)
    return known[id(node)]
