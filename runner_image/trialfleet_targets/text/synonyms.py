"""Words that developers use for one another: what a request calls "login" may live in `auth/`.

One line is one group; every word of a group stands for every other. Written for this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_GROUPS = """
abort cancel interrupt
admin administrator superuser
alert notification notify
api endpoint route
argument arg args parameter param params
array list slice
async asynchronous await promise future
attribute attr property prop
auth authentication authenticate login signin
authorization authorize permission permissions acl
boolean bool flag
cache caching memoize
callback handler hook listener
certificate cert tls ssl
character char rune
client browser frontend
clone copy duplicate
color colour theme style
command cli terminal console
compare diff equality
compress compression gzip deflate
concurrency concurrent parallel thread mutex
config configuration settings options preferences
connection socket conn
constant const enum
convert conversion cast coerce
credential secret password
database db sql
date time datetime timestamp
debug trace verbose
decode deserialize unmarshal parse
default fallback
delete remove destroy drop
dependency dependencies package module
dictionary dict map hashmap
directory dir folder
documentation docs readme
download fetch retrieve
encode serialize marshal stringify
encrypt decrypt cipher crypto
environment env
error exception failure err
event message signal
execute exec run invoke
expression expr
extension plugin addon
format formatter formatting
function func method
header headers metadata
identifier id key
ignore skip exclude
import require include
initialize init setup bootstrap
integer int number
interface protocol trait
job task worker queue
jwt token bearer
language lang locale i18n
length size len
link url uri href
log logger logging
merge combine join
middleware interceptor
migration migrate schema
mock stub fake
network http request
pagination paginate page
regular regex regexp pattern
render display view
repository repo
response reply result
retry backoff attempt
schedule scheduler cron
sort order ranking
stream streaming pipe
string str text
temporary temp tmp
timeout deadline delay
unicode utf8 encoding charset
update modify edit patch
upload multipart
validate validation validator verify
variable var
websocket ws
"""


def _by_word(groups: str) -> Mapping[str, tuple[str, ...]]:
    others: dict[str, dict[str, None]] = {}
    for line in groups.strip().splitlines():
        words = line.split()
        for word in words:
            others.setdefault(word, {}).update({other: None for other in words if other != word})
    return MappingProxyType({word: tuple(found) for word, found in others.items()})


SYNONYMS = _by_word(_GROUPS)
"""From a word in lower case to the words that may be meant by it. Symmetric, and no word is its own."""
