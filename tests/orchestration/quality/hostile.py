"""Values that would like to do harm: to a page, to XML, to a terminal, to a table."""

SCRIPT = '"><script src=https://evil.example/x.js></script><img src=//evil.example onerror=alert(1)> {{ 7*7 }}'
CONTROL = "\x00\x07\x1b[31m\x1b]0;title\x07\r\n\t\x7f\x9b\u2028\ufffe\uffff"
OVERRIDE = "abc\u202egnp.exe\u2066\u200b\ufeff"
ENTITIES = "]]><!--&xxe;--><![CDATA["
LONG = "x" * 2**20
ALL = (SCRIPT, CONTROL, OVERRIDE, ENTITIES, LONG)
