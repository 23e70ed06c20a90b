"""Teachers: labels for the nodes that have none, from features, edges and the few labels that there are.

What is exported here is for users; the rest of the modules is internal.
"""

from __future__ import annotations

from gcond.teaching.teacher import Taught, TeacherName, teach

__all__ = ["Taught", "TeacherName", "teach"]
