"""The programs, by kind.  Each function is one program: it does work with and without the library by session.both or
session.same, and shows by session.served that the allocator was in use."""

from . import languages, compilers, databases, servers, science, text, compression, media, desktop, sandboxes  # noqa: F401
