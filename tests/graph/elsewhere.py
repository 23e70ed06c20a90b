"""An engine in this process whose jobs have what was pickled for them, and nothing else, as on another machine."""

from __future__ import annotations

import io
import pickle
import weakref
from itertools import islice

from gcond.runtime.engines.engine import Engine, ObjectStore, Outcome


class Put:
    def __init__(self, value):
        self.value = value
        self.value.flags.writeable = False


class Elsewhere(Engine):
    """It gives two jobs out at a time; ``stores`` are what it says of object stores."""

    puts = True
    workers = 2

    def __init__(self, stores=()):
        self.stores = list(stores) or [ObjectStore(10**9, 2)]
        self.put_once = []
        self.most_alive = 0
        self.sent = []

    def put(self, value):
        put = Put(value)
        self.put_once.append(weakref.ref(put))
        self.most_alive = max(self.most_alive, self.alive)
        return put

    @property
    def alive(self):
        return sum(put() is not None for put in self.put_once)

    def object_stores(self):
        return self.stores

    def work_off(self, function, shared, jobs, hear):
        there = self._there(shared)
        while batch := list(islice(jobs, self.workers)):
            while batch:
                made = function(there, self._there(batch[0]), lambda fraction: None)
                yield Outcome(batch.pop(0), pickle.loads(pickle.dumps(made)))

    def _there(self, thing):
        file, held = io.BytesIO(), []
        pickler = _Pickler(file, held)
        pickler.dump(thing)
        self.sent.append(file.getvalue())
        return _Unpickler(io.BytesIO(file.getvalue()), held).load()

    def close(self):
        pass


class _Pickler(pickle.Pickler):
    def __init__(self, file, held):
        super().__init__(file)
        self.held = held

    def persistent_id(self, value):
        if not isinstance(value, Put):
            return None
        self.held.append(value.value)
        return len(self.held) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, held):
        super().__init__(file)
        self.held = held

    def persistent_load(self, place):
        return self.held[place]
