"""The order of the gallery: programs that draw come first."""

from sphinx_gallery.sorting import FileNameSortKey


class PicturesFirst(FileNameSortKey):
    def __call__(self, filename):
        return not filename.startswith("plot_"), filename
