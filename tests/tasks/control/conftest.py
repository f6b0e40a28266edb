"""Control tasks need Brax; their tests are left out where it is not."""

import pytest

pytest.importorskip("brax", reason="the extra jedax[brax] is not installed")
