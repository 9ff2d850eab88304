"""The pages for browsers, made from templates over the operations that the API has too."""

from pylogctl.web.pages.rendering import render_error as render_error
from pylogctl.web.pages.views import ROUTES as ROUTES
