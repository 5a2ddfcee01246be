"""Scientific Python and other programs for mathematics."""

from registry import program
from session import debian_directory

PYTHON = "/usr/bin/python3"
# One thread of BLAS: how sums are split among threads changes their last digits.
ENV = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONMALLOC": "malloc"}

NUMPY_SCRIPT = r"""
import numpy as np
from concurrent.futures import ThreadPoolExecutor
r = np.random.default_rng(1)
a = r.standard_normal((300, 300)); u, s, v = np.linalg.svd(a)
print(np.allclose(u * s @ v, a), round(float(s[0]), 6), round(float(np.linalg.det(a[:20, :20])), 3))
print(np.round(np.abs(np.fft.rfft(r.standard_normal(1 << 15)))[:5], 6))
x = [r.integers(0, 1000, n) for n in range(1, 3000, 7)]
print(sum(int(np.unique(y).size) for y in x), np.concatenate(x).cumsum()[-1])
with ThreadPoolExecutor(3) as pool: print(list(pool.map(lambda n: float(np.round(np.sort(np.arange(n) * 7919 % 1009).mean(), 9)), range(1000, 90000, 10000))))
big = np.zeros(3_000_000); big[::3] = 1; big = np.append(big, big); big.resize(7_000_000, refcheck=False); print(big.sum())
o = np.array([str(i) * (i % 5) for i in range(20000)], dtype=object); print(len("".join(o[o != ""])))
"""


@program("python3-numpy:python3-numpy")
def numpy(session):
    """NumPy: decompositions, transforms, sorting in threads, arrays that are resized"""
    session.both([PYTHON, "-c", NUMPY_SCRIPT], env=ENV)
    session.served([PYTHON, "-c", NUMPY_SCRIPT], env=ENV, least_pages=200)


SCIPY_SCRIPT = r"""
import numpy as np
from scipy import optimize, sparse, spatial, integrate, signal
from scipy.sparse.linalg import spsolve
n = 3000; a = sparse.diags([-1, 2.1, -1], [-1, 0, 1], shape=(n, n), format="csc"); print(round(float(spsolve(a, np.ones(n)).sum()), 6))
print(optimize.minimize(optimize.rosen, [1.3, 0.7, 0.8, 1.9, 1.2], method="BFGS").x.round(4))
p = np.random.default_rng(2).random((4000, 3)); t = spatial.cKDTree(p); print(len(t.query_pairs(0.05)), spatial.ConvexHull(p).vertices.size)
print(integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0, 20), [1, 0], rtol=1e-8).y[:, -1].round(6))
print(signal.fftconvolve(np.ones(20000), np.arange(999.0)).sum().round(3))
"""


@program("python3-scipy:python3-scipy")
def scipy(session):
    """SciPy: sparse matrices, optimisation, trees of points, differential equations; its Fortran and C++ libraries"""
    session.both([PYTHON, "-c", SCIPY_SCRIPT], env=ENV)
    session.served([PYTHON, "-c", SCIPY_SCRIPT], env=ENV, least_pages=500)


PANDAS_SCRIPT = r"""
import io, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
r = np.random.default_rng(3); n = 60000
d = pd.DataFrame({"k": r.integers(0, 300, n), "s": [f"name{i * 7919 % 1009}" for i in range(n)], "x": r.random(n).round(6)})
print(d.groupby("k").x.agg(["sum", "count"]).round(6).head(3)); print(d.groupby("s").size().sort_values(kind="stable").tail(2))
m = d.merge(d.drop_duplicates("k")[["k", "s"]], on="k", suffixes=("", "2")); print(len(m), m.s2.nunique())
text = d.to_csv(index=False); e = pd.read_csv(io.StringIO(text)); print(len(text), e.equals(d), e.s.str.upper().str[4:].astype(int).sum())
print(d.pivot_table(index="k", columns=d.s.str[-1], values="x").round(4).iloc[5, :4].tolist())
t = d.set_index(pd.date_range("2020", periods=n, freq="min")).x.resample("D").mean().round(6); print(t.tail(2))
"""


@program("python3-pandas:python3-pandas")
def pandas(session):
    """pandas: groups, joins, CSV, time series"""
    session.both([PYTHON, "-c", PANDAS_SCRIPT], env=ENV)
    session.served([PYTHON, "-c", PANDAS_SCRIPT], env=ENV, least_pages=1000)


R_SCRIPT = r"""
set.seed(1); n <- 60000
d <- data.frame(g = (seq_len(n) * 7919) %% 301, x = rnorm(n), s = paste0("k", seq_len(n) %% 1009))
a <- aggregate(x ~ g, d, mean); print(head(a, 3)); print(summary(lm(x ~ g, d))$coefficients)
print(nchar(paste(sort(unique(d$s)), collapse = ","))); l <- split(d$x, d$s); print(length(l)); print(sum(sapply(l, length)))
m <- matrix(rnorm(40000), 200); print(round(sum(svd(m)$d), 6)); print(sum(grepl("7", d$s)))
f <- function(i) if (i < 2) i else f(i - 1) + f(i - 2); print(f(18)); print(sum(unlist(parallel::mclapply(1:4, function(i) i * 100, mc.cores = 2)))); invisible(gc())
"""


@program("r-base-core:R")
def r(session):
    """R: data frames, a regression, decompositions, strings, forked workers"""
    argv = ["R", "--vanilla", "--no-echo", "-e", R_SCRIPT.replace("\n", " ; ").strip(" ;")]
    session.both(argv, env={"OPENBLAS_NUM_THREADS": "1"})
    session.served(argv, env={"OPENBLAS_NUM_THREADS": "1"}, least_pages=300)


OCTAVE_SCRIPT = r"""
A = reshape (mod ((1:40000) * 7919, 1009), 200, 200); printf ("%.6f %.6f\n", norm (A), sum (svd (A)));
s = struct (); for i = 1:3000, s.(sprintf ("k%d", mod (i * 7919, 301))) = repmat ("x", 1, mod (i, 50)); end
printf ("%d %d\n", numfields (s), sum (structfun (@numel, s)));
c = cellfun (@(n) num2str (n * n), num2cell (1:3000), "UniformOutput", false); printf ("%d\n", numel (strjoin (c, ",")));
[t, y] = ode45 (@(t, y) [y(2); -y(1)], [0 10], [1; 0]); printf ("%.4f\n", y(end, 1));
S = sprandn (500, 500, 0.01) * 0 + speye (500) * 3; printf ("%.3f\n", full (sum (S \ ones (500, 1))));
printf ("%d\n", numel (regexp (repmat ("ab12cd ", 1, 2000), '\d+', "match")));
"""


@program("octave:octave-cli")
def octave(session):
    """GNU Octave: matrices, structures, cells, a differential equation, sparse systems"""
    argv = ["octave-cli", "--norc", "--no-history", "--quiet", "--eval", OCTAVE_SCRIPT]
    session.both(argv, env={"OPENBLAS_NUM_THREADS": "1"})
    session.served(argv, env={"OPENBLAS_NUM_THREADS": "1"}, least_pages=100)


MAXIMA_SCRIPT = r"""
display2d: false$ factor(x^30 - 1); integrate(1/(x^4 + 1), x); expand((a + b + c)^12)$ length(%); solve(x^3 - 7*x + 6, x);
determinant(genmatrix(lambda([i, j], 1/(i + j)), 12, 12)); taylor(exp(sin(x)), x, 0, 12); 3^2000$ mod(%, 10^20);
"""


@program("maxima")
def maxima(session):
    """Maxima: factors, integrals, expansions; its Lisp is GCL"""
    argv = ["maxima", "--very-quiet", "--no-init"]
    session.both(argv, stdin=MAXIMA_SCRIPT)
    session.own_allocator(debian_directory("usr/lib/maxima/*/binary-*/maxima"), argv, "GNU Common Lisp", stdin=MAXIMA_SCRIPT)
