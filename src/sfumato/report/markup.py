"""The names of `core.markup` for cards, pages and figures."""

from sfumato.core.markup import Child as Child
from sfumato.core.markup import Html as Html
from sfumato.core.markup import code as code
from sfumato.core.markup import definitions as definitions
from sfumato.core.markup import element as element
from sfumato.core.markup import explained as explained
from sfumato.core.markup import html as html
from sfumato.core.markup import joined as joined
from sfumato.core.markup import section as section
from sfumato.core.markup import shorten as shorten
from sfumato.core.markup import state as state
from sfumato.core.markup import table as table
from sfumato.core.markup import terminal as terminal
from sfumato.core.markup import visible as visible
