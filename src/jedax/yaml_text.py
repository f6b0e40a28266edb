"""YAML from files that anybody may have written: plain values, and no more of them than a file has room for."""

from __future__ import annotations

from typing import Any

from jedax.errors import JedaxError, fail

# A maze of 20,000 walls has half a million characters.
_MOST_CHARACTERS = 2_000_000
_MOST_VALUES = 500_000


def read_yaml(text: str, where: str) -> Any:
    """Return what YAML says: names, numbers, texts, lists, mappings and dates; nothing that runs code.

    Args:
        text: The YAML.
        where: Where it comes from, for errors.

    Raises:
        JedaxError: It is not YAML, longer than any settings are, nested too deeply, or refers to parts of itself so
            often that there would be no end of it.
    """
    import yaml

    if len(text) > _MOST_CHARACTERS:
        raise _refused(where, f"at most {_MOST_CHARACTERS:,} characters of YAML", f"{len(text):,}")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if _size(node, {}) > _MOST_VALUES:
            raise _refused(where, f"at most {_MOST_VALUES:,} values", "more, by references to other parts")
        return None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        at = f"a syntax error in line {place.line + 1}" if place else "a syntax error"
        raise _refused(where, "YAML", at) from None
    except RecursionError:
        raise _refused(where, "YAML", "values nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # dates that do not exist, and the like
        if isinstance(error, JedaxError):
            raise
        raise _refused(where, "YAML", f"a value that is none ({error})") from None


def _refused(where: str, expected: str, received: str) -> JedaxError:
    return fail(where, expected=expected, received=received, remedy="mend the file")


def _size(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node stands for, all references followed; one that holds itself has no end."""
    if id(node) not in known:
        known[id(node)] = 10 * _MOST_VALUES
        children = getattr(node, "value", None)
        parts = children if isinstance(children, list) else []
        inner = (part for pair in parts for part in (pair if isinstance(pair, tuple) else (pair,)))
        known[id(node)] = min(1 + sum(_size(part, known) for part in inner), 10 * _MOST_VALUES)
    return known[id(node)]
