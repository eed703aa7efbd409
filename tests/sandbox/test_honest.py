"""Honest programs with results, arguments or exceptions that are not plain data.

The verdict must be that of an ordinary `exec`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sandbox.protocol import Job, Report
from tests.sandbox.honest_objects import OBJECTS
from tests.sandbox.jobs import asserting

Judge = Callable[[Job], Report]

# name: source, body of check(candidate), prompt
HONEST = {
    **OBJECTS,
    'Path': (
        "from pathlib import Path\ndef f(): return [Path('/a'), Path('b')/'c']",
        "from pathlib import Path, PurePosixPath\n"
        "    assert candidate()==[Path('/a'),Path('b/c')] and candidate()[1].name=='c' "
        "and str(candidate()[0])=='/a'", ''),
    'byte order mark': ('\ufeffdef f(x): return x', 'assert candidate(1)==1', ''),
    'own source': (
        'import inspect\ndef g(): return 1\ndef f(): return inspect.getsource(g)',
        r"assert candidate()=='def g(): return 1\n'", ''),
    'own file': (
        'def f(): return open(__file__).read().count("def ")',
        'assert candidate()==2', ''),
    'spawned processes': (
        'import multiprocessing\ndef g(x): return 2*x\n'
        'def f(xs):\n    with multiprocessing.get_context("spawn").Pool(1) as pool:\n'
        '        return pool.map(g, xs)',
        'assert candidate([1,2])==[2,4]', ''),
    'Path arg': (
        'def f(p): return p.suffix',
        "from pathlib import Path\n    assert candidate(Path('a.txt'))=='.txt'", ''),
    'uuid': (
        'import uuid\ndef f(s): return uuid.UUID(s)',
        "import uuid\n    u='12345678123456781234567812345678'\n"
        "    assert candidate(u)==uuid.UUID(u) and candidate(u).hex==u", ''),
    'ip': (
        'import ipaddress\ndef f(s): return ipaddress.ip_address(s)',
        "import ipaddress\n    assert candidate('1.2.3.4')==ipaddress.ip_address('1.2.3.4')", ''),
    'datetime tz': (
        'from datetime import datetime, timezone, timedelta\n'
        'def f(): return datetime(2020,1,1,tzinfo=timezone(timedelta(hours=2)))',
        'from datetime import datetime, timezone, timedelta\n'
        '    assert candidate()==datetime(2020,1,1,tzinfo=timezone(timedelta(hours=2))) '
        'and candidate().hour==0', ''),
    'timedelta': (
        'from datetime import timedelta\ndef f(): return timedelta(days=1)',
        'assert candidate().total_seconds()==86400', ''),
    'decimal': (
        'from decimal import Decimal\ndef f(x): return Decimal(x)/3',
        "from decimal import Decimal\n    assert round(candidate('1'),3)==Decimal('0.333') and "
        "abs(candidate('1')-Decimal(1)/3)<Decimal('1e-9')", ''),
    'complex': (
        'def f(): return complex(1,2)', 'assert candidate()==1+2j and candidate().imag==2', ''),
    'range': (
        'def f(n): return range(n)',
        'assert candidate(3)==range(3) and list(candidate(3))==[0,1,2]', ''),
    'bytes bytearray': (
        'def f(b): return bytearray(b)',
        "r=candidate(b'ab')\n    r.append(99)\n    assert r==bytearray(b'abc')", ''),
    'bytearray arg in place': (
        "def f(b): b.extend(b'x')", "b=bytearray(b'a')\n    candidate(b)\n    assert b==b'ax'",
        ''),
    'deque arg in place': (
        'def f(d): d.appendleft(0)',
        'from collections import deque\n    d=deque([1])\n    candidate(d)\n'
        '    assert d==deque([0,1])', ''),
    'array': (
        "import array\ndef f(): return array.array('i',[1,2])",
        "import array\n    assert candidate()==array.array('i',[1,2]) and candidate()[1]==2", ''),
    'memoryview result': (
        "def f(): return memoryview(b'abc')", "assert bytes(candidate())==b'abc'", ''),
    'stringio arg written': (
        "def f(out): out.write('hello')",
        "import io\n    b=io.StringIO()\n    candidate(b)\n    assert b.getvalue()=='hello'", ''),
    'stringio written and none': (
        "def f(out):\n    print('hi',file=out)",
        "import io\n    b=io.StringIO()\n    candidate(b)\n    assert b.getvalue()=='hi\\n'", ''),
    'stringio result': (
        "import io\ndef f(): return io.StringIO('ab')", "assert candidate().read()=='ab'", ''),
    'bytesio arg': (
        'def f(fp): return fp.read()[::-1]',
        "import io\n    assert candidate(io.BytesIO(b'ab'))==b'ba'", ''),
    'file lines': (
        'def f(fp): return [l.strip() for l in fp]',
        "import io\n    assert candidate(io.StringIO('a\\nb\\n'))==['a','b']", ''),
    'real file arg': (
        'def f(fp): return fp.readline()',
        "import tempfile,os\n    p=os.path.join(tempfile.mkdtemp(),'x')\n"
        "    open(p,'w').write('l1\\nl2')\n    with open(p) as h:\n"
        "        assert candidate(h)=='l1\\n'", ''),
    'namespace arg': (
        'def f(o): return o.a+o.b.c',
        'from types import SimpleNamespace as N\n    assert candidate(N(a=1,b=N(c=2)))==3', ''),
    'namespace result': (
        'from types import SimpleNamespace as N\ndef f(): return N(a=1)',
        'from types import SimpleNamespace as N\n'
        '    assert candidate().a==1 and candidate()==N(a=1)', ''),
    'namespace in place': (
        'def f(o): o.a=5',
        'from types import SimpleNamespace as N\n    o=N(a=1)\n    candidate(o)\n    assert o.a==5',
        ''),
    'generator arg': ('def f(g): return max(g)', 'assert candidate(x*x for x in range(5))==16', ''),
    'generator arg consumed partly': (
        'def f(g): return next(g)', 'g=iter([1,2,3])\n    assert candidate(g)==1 and next(g)==2',
        ''),
    'infinite arg': (
        'def f(g,n): return [next(g) for _ in range(n)]',
        'import itertools\n    assert candidate(itertools.count(),3)==[0,1,2]', ''),
    'map arg': ('def f(g): return list(g)', "assert candidate(map(str,[1,2]))==['1','2']", ''),
    'callback': (
        'def f(xs,cb):\n    for x in xs: cb(x)',
        'out=[]\n    candidate([1,2],out.append)\n    assert out==[1,2]', ''),
    'class instance arg of test': (
        'def f(o): return o.x*2',
        'class O:\n        def __init__(s): s.x=3\n    assert candidate(O())==6', ''),
    'method of prompt class': (
        'class Acc:\n    def __init__(s,b): s.b=b\n    def dep(s,x): s.b+=x\ndef f(a,x):\n'
        '    a.dep(x)\n    return a', 'a=Acc(1)\n    r=candidate(a,5)\n    assert r.b==6',
        'class Acc:\n    def __init__(s,b): s.b=b\n    def dep(s,x): s.b+=x\n'),
    'nested 300': (
        'def f(n):\n    x=0\n    for _ in range(n): x=[x]\n    return x',
        'r=candidate(300)\n    d=0\n    while isinstance(r,list):\n        r=r[0]\n        d+=1\n'
        '    assert d==300', ''),
    'nested dict 200': (
        "def f(n):\n    x=0\n    for _ in range(n): x={'a':x}\n    return x",
        "r=candidate(200)\n    d=0\n    while isinstance(r,dict):\n        r=r['a']\n"
        "        d+=1\n    assert d==200", ''),
    'in place return': (
        'def f(a):\n    a.sort()\n    return a',
        'nums=[3,1]\n    candidate(nums)\n    assert nums==[1,3]', ''),
    'in place identity': (
        'def f(a):\n    a.append(1)\n    return a',
        'x=[0]\n    r=candidate(x)\n    assert r==[0,1]\n    assert x==[0,1]', ''),
    'remove duplicates': (
        'def f(nums):\n    u=sorted(set(nums)); nums[:len(u)]=u; return len(u)',
        'nums=[0,0,1,1,2]\n    k=candidate(nums)\n    assert k==3\n    assert nums[:3]==[0,1,2]',
        ''),
    'numpy scalar': (
        'import numpy as np\ndef f(): return np.float64(1.5)', 'assert candidate()==1.5', ''),
    'numpy array': (
        'import numpy as np\ndef f(): return np.array([1,2])',
        'import numpy as np\n'
        '    assert np.array_equal(candidate(),np.array([1,2])) and list(candidate())==[1,2]', ''),
    'str subclass': ("class S(str): pass\ndef f(): return S('a')", "assert candidate()=='a'", ''),
    'bool int': ('def f(): return True', 'assert candidate()==1 and candidate() is True', ''),
    'type result': (
        'def f(x): return type(x)', "assert candidate(3) is int and candidate('')==str", ''),
    'not implemented': (
        'def f(): return NotImplemented', 'assert candidate() is NotImplemented', ''),
    'ellipsis': ('def f(): return ...', 'assert candidate() is ...', ''),
    'exception instance': (
        "def f(): return ValueError('x')",
        "r=candidate()\n    assert isinstance(r,ValueError) and str(r)=='x'", ''),
    'lambda sort key compare': (
        'def f(a): return sorted(a,key=lambda t:t[1])',
        'assert candidate([(1,2),(0,1)])==[(0,1),(1,2)]', ''),
    'frozenset keys': (
        'def f(): return {frozenset({1}):2}', 'assert candidate()[frozenset([1])]==2', ''),
    'set of tuples': ('def f(): return {(1,2),(3,4)}', 'assert (1,2) in candidate()', ''),
    'large int': ('def f(): return 10**5000', 'assert candidate()==10**5000', ''),
    'inf nan': (
        'import math\ndef f(): return [math.inf,-math.inf,math.nan]',
        'import math\n    r=candidate()\n    assert r[0]==math.inf and math.isnan(r[2])', ''),
    'surrogates': ("def f(): return '\\ud800'", "assert candidate()=='\\ud800'", ''),
    'async': (
        'import asyncio\nasync def f(x): return x+1',
        'import asyncio\n    assert asyncio.run(candidate(1))==2', ''),
    'async gen': (
        'async def f(n):\n    for i in range(n): yield i',
        'import asyncio\n    async def go(): return [x async for x in candidate(3)]\n'
        '    assert asyncio.run(go())==[0,1,2]', ''),
    'stdout capture': (
        'def f(x): print(x)',
        "import io,contextlib\n    b=io.StringIO()\n    with contextlib.redirect_stdout(b):\n"
        "        candidate(5)\n    assert b.getvalue()=='5\\n'", ''),
    'memo attribute': (
        "def f(n):\n    f.calls=getattr(f,'calls',0)+1\n    return n",
        'candidate(1)\n    candidate(1)\n    assert candidate.calls==2', ''),
    '__name__': ('def f(a): return a', "assert candidate.__name__=='f'", ''),
    'equality objects': (
        'class V:\n    def __init__(s,x): s.x=x\n    def __eq__(s,o): return s.x==o.x\n'
        'def f(x): return V(x)',
        'assert candidate(1)==candidate(1) and not candidate(1)==candidate(2)', ''),
    'sorted objects': (
        'import functools\n@functools.total_ordering\nclass V:\n    def __init__(s,x): s.x=x\n'
        '    def __eq__(s,o): return s.x==o.x\n    def __lt__(s,o): return s.x<o.x\n'
        'def f(x): return V(x)',
        'assert candidate(1)<candidate(2) and max([candidate(1),candidate(5)]).x==5', ''),
    'vector add': (
        'class V:\n    def __init__(s,x): s.x=x\n    def __add__(s,o): return V(s.x+o.x)\n'
        'def f(x): return V(x)', 'assert (candidate(1)+candidate(2)).x==3', ''),
    'getitem dictlike': (
        "class D:\n    def __init__(s): s.d={'a':1}\n    def __getitem__(s,k): return s.d[k]\n"
        "def f(): return D()", "assert candidate()['a']==1", ''),
    'setitem': (
        'class D:\n    def __init__(s): s.d={}\n    def __getitem__(s,k): return s.d[k]\n'
        '    def __setitem__(s,k,v): s.d[k]=v\ndef f(): return D()',
        "d=candidate()\n    d['a']=4\n    assert d['a']==4", ''),
    'slice': (
        'class L:\n    def __init__(s): s.l=[1,2,3]\n    def __getitem__(s,k): return s.l[k]\n'
        '    def __len__(s): return 3\ndef f(): return L()', 'assert candidate()[1:]==[2,3]', ''),
    'iter class twice': (
        'class L:\n    def __iter__(s): return iter([1,2])\ndef f(): return L()',
        'r=candidate()\n    assert list(r)==[1,2] and sum(r)==3', ''),
    'str of object': (
        "class T:\n    def __str__(s): return 'T!'\ndef f(): return T()",
        "assert str(candidate())=='T!' and f'{candidate()}'=='T!'", ''),
    'int of object': (
        'class T:\n    def __int__(s): return 4\n    def __index__(s): return 4\n'
        'def f(): return T()', 'assert int(candidate())==4 and [0,1,2,3,4][candidate()]==4', ''),
    'hash set of objects': (
        'class T:\n    def __init__(s,x): s.x=x\n    def __eq__(s,o): return s.x==o.x\n'
        '    def __hash__(s): return hash(s.x)\ndef f(x): return T(x)',
        'assert len({candidate(1),candidate(1),candidate(2)})==2', ''),
    'global class of program': (
        'class Stack:\n    def __init__(s): s.a=[]\n    def push(s,x): s.a.append(x)\n'
        'def f(): return 0', 's=Stack()\n    s.push(1)\n    assert s.a==[1]', ''),
    'LRU': (
        'class LRU:\n    def __init__(s,c): s.c=c; s.d={}\n'
        '    def get(s,k): return s.d.get(k,-1)\n    def put(s,k,v): s.d[k]=v\n'
        'def f(c): return LRU(c)',
        'l=candidate(2)\n    l.put(1,1)\n    assert l.get(1)==1\n    assert l.get(2)==-1', ''),
    'kwonly': ('def f(*,a): return a', 'assert candidate(a=1)==1', ''),
    'string formatting result': ("def f(): return f'{1.5:.2f}'", "assert candidate()=='1.50'", ''),
    'time.struct': (
        'import time\ndef f(): return time.gmtime(0)', 'assert candidate().tm_year==1970', ''),
    're pattern arg': (
        'import re\ndef f(p,s): return bool(p.search(s))',
        "import re\n    assert candidate(re.compile('a+'),'caat')", ''),
    're pattern result': (
        "import re\ndef f(): return re.compile('a+')", "assert candidate().match('aa')", ''),
    'random arg': (
        'def f(rng): return rng.randint(1,6)',
        'import random\n    assert candidate(random.Random(3))==random.Random(3).randint(1,6)',
        ''),
    'user dict subclass': (
        "class MyD(dict): pass\ndef f():\n    d=MyD(); d['a']=1; return d",
        "assert candidate()=={'a':1}", ''),
    'test list subclass arg': (
        'def f(x): return sum(x)', 'class L(list): pass\n    assert candidate(L([1,2]))==3', ''),
    'chained map filter': (
        'def f(x): return filter(None,x)', 'assert list(candidate([0,1,2]))==[1,2]', ''),
    'enumerate': (
        'def f(x): return enumerate(x)', "assert list(candidate('ab'))==[(0,'a'),(1,'b')]", ''),
    'iter over dict of lists': (
        "def f():\n    return {'a':iter([1,2])}", "assert list(candidate()['a'])==[1,2]", ''),
    'tuple of generators': (
        "def f(): return (i for i in 'ab'), (i for i in 'cd')",
        "a,b=candidate()\n    assert list(a)==['a','b'] and list(b)==['c','d']", ''),
    'itertools tee groupby': (
        'import itertools\ndef f(s): return itertools.groupby(s)',
        "assert [(k,len(list(g))) for k,g in candidate('aab')]==[('a',2),('b',1)]", ''),
    'product': (
        "import itertools\ndef f(): return itertools.product('ab',repeat=2)",
        'assert len(list(candidate()))==4', ''),
    'hash of str consistent': (
        'def f(s): return hash(s)', "assert candidate('a')==candidate('a')", ''),
    'id/uniqueness': ('def f(): return []', 'assert candidate() is not candidate()', ''),
}  # fmt: skip


@pytest.mark.parametrize("what", HONEST)
def test_an_honest_program_is_accepted(judge: Judge, what: str) -> None:
    source, check, prompt = HONEST[what]
    assert judge(asserting(source, check, prompt=prompt)).verdict == "AC"


BY_DESIGN = {
    "an operator with a value of the tests": (
        "class V:\n    def __init__(self, x): self.x = x\n"
        "    def __mul__(self, k): return V(self.x * k)\ndef f(x): return V(x)",
        "assert (candidate(2) * 3).x == 6"),
    "membership decided by the program": (
        "class R:\n    def __contains__(self, v): return 1 <= v <= 5\ndef f(): return R()",
        "assert 3 in candidate()"),
    "an argument that cannot be copied": (
        "def f(lock):\n    with lock: return 1",
        "import threading\n    assert candidate(threading.Lock()) == 1"),
    "the signature of the function": (
        "def f(a, b=2): return a + b",
        "import inspect\n    assert list(inspect.signature(candidate).parameters) == ['a', 'b']"),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_DESIGN)
def test_documented_limitations_are_rejected(judge: Judge, what: str) -> None:
    assert judge(asserting(*BY_DESIGN[what])).verdict == "WA"
