"""How pictures are written."""

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from jedax.report.pictures import write_picture


@pytest.mark.parametrize("length", range(40, 56))
def test_a_title_wider_than_the_figure_is_whole(tmp_path, length):
    figure, _ = plt.subplots(figsize=(3, 3))
    # Whichever part of it lies at the edge of the canvas, a letter or a space.
    title = figure.axes[0].set_title(("i " * length)[:-1])
    figure.subplots_adjust(0.2, 0.2, 0.8, 0.8)
    figure.set_dpi(150)
    width = title.get_window_extent().width
    path = write_picture(tmp_path / "wide.png", figure)
    assert width > 450
    assert Image.open(path).width >= width
