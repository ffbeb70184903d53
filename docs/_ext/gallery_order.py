"""Order of the gallery: examples with figures come first."""

from sphinx_gallery.sorting import FileNameSortKey


class PicturesFirst(FileNameSortKey):
    def __call__(self, filename):
        return not filename.startswith("plot_"), filename
