"""Honest programs whose results are objects, iterators, functions or exceptions."""

from __future__ import annotations

# name: source, body of check(candidate), prompt
OBJECTS = {
    'dataclass result attr': (
        'from dataclasses import dataclass\n@dataclass\nclass P:\n    x:int\n    y:int\n'
        'def f(): return P(1,2)',
        'r=candidate()\n    assert r.x==1 and r.y==2\n    assert r.x+r.y==3', ''),
    'dataclass repr': (
        'from dataclasses import dataclass\n@dataclass\nclass P:\n    x:int\ndef f(): return P(1)',
        "assert repr(candidate())=='P(x=1)'", ''),
    'namedtuple unpack': (
        "from collections import namedtuple\nP=namedtuple('P','x y')\ndef f(): return P(1,2)",
        "x,y=candidate()\n    assert (x,y)==(1,2) and candidate()._asdict()=={'x':1,'y':2}", ''),
    'NamedTuple class': (
        'from typing import NamedTuple\nclass P(NamedTuple):\n    x:int\n    y:int=2\n'
        'def f(): return [P(1),P(3)]',
        'assert [p.y for p in candidate()]==[2,2] and candidate()==[(1,2),(3,2)]', ''),
    'namedtuple arg': (
        "from collections import namedtuple\nP=namedtuple('P','x y')\ndef f(p): return p.x+p.y",
        'assert candidate(P(1,2))==3',
        "from collections import namedtuple\nP=namedtuple('P','x y')\n"),
    'enum from prompt': (
        'from enum import Enum\nclass C(Enum):\n    RED=1\n    BLUE=2\n'
        'def f(c): return C.BLUE if c is C.RED else C.RED', 'assert candidate(C.RED) is C.BLUE',
        'from enum import Enum\nclass C(Enum):\n    RED=1\n    BLUE=2\n'),
    'intenum from prompt': (
        'from enum import IntEnum\nclass C(IntEnum):\n    A=1\ndef f(): return C.A',
        'assert candidate()==1 and candidate() is C.A',
        'from enum import IntEnum\nclass C(IntEnum):\n    A=1\n'),
    'own enum name': (
        'from enum import Enum\nclass C(Enum):\n    RED=1\ndef f(): return C.RED',
        "assert candidate().name=='RED' and candidate().value==1", ''),
    'intenum own': (
        'from enum import IntEnum\nclass C(IntEnum):\n    A=1\ndef f(): return C.A',
        'assert candidate()==1', ''),
    'counter most_common': (
        'from collections import Counter\ndef f(s): return Counter(s)',
        "r=candidate('aab')\n"
        "    assert r.most_common(1)==[('a',2)] and r['z']==0 and r=={'a':2,'b':1}", ''),
    'ordereddict': (
        "from collections import OrderedDict\ndef f(): return OrderedDict([('b',1),('a',2)])",
        "from collections import OrderedDict\n"
        "    assert candidate()==OrderedDict([('b',1),('a',2)]) and list(candidate())==['b','a']",
        ''),
    'defaultdict': (
        "from collections import defaultdict\ndef f():\n"
        "    d=defaultdict(list); d['a'].append(1); return d", "assert candidate()=={'a':[1]}",
        ''),
    'dict view keys': (
        'def f(d): return d.keys()',
        "assert list(candidate({'a':1,'b':2}))==['a','b']\n"
        "    assert 'a' in candidate({'a':1}) and len(candidate({'a':1}))==1\n"
        "    assert candidate({'a':1})=={'a'}", ''),
    'dict items arg': (
        'def f(items): return dict(items)', "assert candidate({'a':1}.items())=={'a':1}", ''),
    'map result': (
        'def f(x): return map(lambda v:v*2,x)', 'assert list(candidate([1,2]))==[2,4]', ''),
    'zip result': (
        'def f(a,b): return zip(a,b)', 'assert list(candidate([1,2],[3,4]))==[(1,3),(2,4)]', ''),
    'reversed result': ('def f(a): return reversed(a)', 'assert list(candidate([1,2]))==[2,1]', ''),
    'generator twice': (
        'def f(n):\n    for i in range(n): yield i',
        'g=candidate(3)\n    assert sum(g)==3 and list(g)==[]', ''),
    'two generators zipped': (
        'def f(n):\n    for i in range(n): yield i',
        'assert list(zip(candidate(3),candidate(3)))==[(0,0),(1,1),(2,2)]', ''),
    'generator arg roundtrip': (
        'def f(it):\n    for v in it: yield v+1',
        'assert list(candidate(candidate(iter([1,2]))))==[3,4]', ''),
    'generator partially then pass back': (
        'def f(it): return (v for v in it)',
        'g=candidate(iter([1,2,3]))\n    assert next(g)==1\n    assert list(candidate(g))==[2,3]',
        ''),
    'infinite generator': (
        'def f():\n    a,b=0,1\n    while True:\n        yield a\n        a,b=b,a+b',
        'import itertools\n    assert list(itertools.islice(candidate(),6))==[0,1,1,2,3,5]', ''),
    'perfect numbers lazy': (
        'def f():\n    n=2\n    while True:\n'
        '        if sum(d for d in range(1,n) if n%d==0)==n: yield n\n        n+=1',
        'g=candidate()\n    assert [next(g) for _ in range(3)]==[6,28,496]', ''),
    'match object': (
        "import re\ndef f(s): return re.match(r'(\\w)(\\d)',s)",
        "m=candidate('a1')\n    assert m.group(1)=='a' and m.group(2)=='1' and m[0]=='a1'", ''),
    'match truth': (
        "import re\ndef f(s): return re.match('a',s)",
        "assert candidate('ab')\n    assert not candidate('b')", ''),
    'callable result': (
        'def f(n):\n    def g(x): return x*n\n    return g',
        'assert candidate(3)(4)==12 and callable(candidate(3))', ''),
    'partial result': (
        'import functools, operator\ndef f(n): return functools.partial(operator.add,n)',
        'assert candidate(3)(4)==7', ''),
    'class result': (
        'class Stack:\n    def __init__(self): self.a=[]\n    def push(self,x): self.a.append(x)\n'
        '    def pop(self): return self.a.pop()\n    def __len__(self): return len(self.a)\n'
        'def f(): return Stack()',
        's=candidate()\n    s.push(1)\n    s.push(2)\n    assert len(s)==2\n'
        '    assert s.pop()==2\n    assert len(s)==1', ''),
    'class counter noarg': (
        'class C:\n    n=0\n    def inc(self): self.n+=1\ndef f(): return C()',
        'c=candidate()\n    c.inc()\n    c.inc()\n    assert c.n==2', ''),
    'property': (
        'class T:\n    def __init__(self,c): self._c=c\n    @property\n'
        '    def fahrenheit(self): return self._c*9/5+32\ndef f(c): return T(c)',
        'assert candidate(100).fahrenheit==212', ''),
    'slots': (
        "class T:\n    __slots__=('a','b')\n    def __init__(self): self.a=1; self.b=2\n"
        "def f(): return T()", 't=candidate()\n    assert t.a==1 and t.b==2', ''),
    'linked list own class': (
        'class N:\n    def __init__(s,v,n=None): s.v=v; s.next=n\ndef f(xs):\n    h=None\n'
        '    for x in reversed(xs): h=N(x,h)\n    return h',
        'h=candidate([1,2,3])\n    out=[]\n    while h:\n        out.append(h.v)\n'
        '        h=h.next\n    assert out==[1,2,3]', ''),
    'tree own class cycle': (
        'class N:\n    def __init__(s,v): s.v=v; s.parent=None; s.kids=[]\ndef f():\n'
        '    r=N(1); k=N(2); k.parent=r; r.kids.append(k); return r',
        'r=candidate()\n'
        '    assert r.kids[0].v==2 and r.kids[0].parent.v==1 and r.kids[0].parent is r', ''),
    'context manager': (
        'import contextlib\n@contextlib.contextmanager\ndef f():\n    yield 5',
        'with candidate() as x:\n        assert x==5', ''),
    'custom exc attr': (
        "class E(Exception):\n    def __init__(self,code): super().__init__('c'); self.code=code\n"
        "def f(x): raise E(x)",
        "try:\n        candidate(4)\n    except Exception as e:\n"
        "        assert e.code==4 and str(e)=='c' and type(e).__name__=='E'\n        return\n"
        "    assert False", ''),
    'custom KeyError': (
        "class Missing(KeyError): pass\ndef f(x): raise Missing('k')",
        'try:\n        candidate(4)\n    except KeyError as e:\n'
        '        assert e.args[0]==\'k\' and str(e)=="\'k\'"\n        return\n    assert False',
        ''),
    'custom two bases': (
        "class E(ValueError,LookupError): pass\ndef f(x): raise E('k')",
        'try:\n        candidate(4)\n    except LookupError as e:\n'
        '        assert isinstance(e,ValueError)\n        return\n    assert False', ''),
    'zero div message': (
        'def f(x): return 1/x',
        "try:\n        candidate(0)\n    except ZeroDivisionError as e:\n"
        "        assert str(e)=='division by zero'\n        return\n    assert False", ''),
    'key error args': (
        "def f(d): return d['x']",
        "try:\n        candidate({})\n    except KeyError as e:\n        assert e.args==('x',)\n"
        "        return\n    assert False", ''),
    'OSError errno': (
        'def f(p): return open(p)',
        "import errno\n    try:\n        candidate('/nope/x')\n"
        "    except FileNotFoundError as e:\n        assert e.errno==errno.ENOENT\n"
        "        return\n    assert False", ''),
    'system exit': (
        'import sys\ndef f(): sys.exit(3)',
        'try:\n        candidate()\n    except SystemExit as e:\n        assert e.code==3\n'
        '        return\n    assert False', ''),
    'raises via unittest helper': (
        "def f(x): raise ValueError('bad')",
        "import unittest\n    t=unittest.TestCase()\n    with t.assertRaises(ValueError) as c:\n"
        "        candidate(1)\n    assert 'bad' in str(c.exception)", ''),
    'recursion error': (
        'def f(n): return f(n+1)',
        'try:\n        candidate(0)\n    except RecursionError:\n        return\n    assert False',
        ''),
    'stop iteration': (
        'def f(it): return next(it)',
        'try:\n        candidate(iter([]))\n    except StopIteration:\n        return\n'
        '    except Exception as e:\n        return\n    assert False', ''),
}  # fmt: skip
