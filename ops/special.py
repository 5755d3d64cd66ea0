"""Special functions of one double, as formulas that are bound to NumPy (scalar.py) and to Triton (special_gpu.py).

No branches: all cases are computed and `where` picks. Constants: Cephes Math Library (S. L. Moshier): ndtr.c, gamma.c,
psi.c; the start of erfinv is the one of Matlab's and torch's.
"""


def erf_middle(x):
    """erf for |x| < 1."""
    z = x * x
    p = (((9.60497373987051638749e0 * z + 9.00260197203842689217e1) * z + 2.23200534594684319226e3) * z
         + 7.00332514112805075473e3) * z + 5.55923013010394962768e4
    q = ((((z + 3.35617141647503099647e1) * z + 5.21357949780152679795e2) * z + 4.59432382970980127987e3) * z
         + 2.26290000613890934246e4) * z + 4.92673942608635921086e4
    return x * p / q


def erfc_tail(x):
    """erfc for x >= 1."""
    p = (((((((2.46196981473530512524e-10 * x + 5.64189564831068821977e-1) * x + 7.46321056442269912687e0) * x
             + 4.86371970985681366614e1) * x + 1.96520832956077098242e2) * x + 5.26445194995477358631e2) * x
          + 9.34528527171957607540e2) * x + 1.02755188689515710272e3) * x + 5.57535335369399327526e2
    q = (((((((x + 1.32281951154744992508e1) * x + 8.67072140885989742329e1) * x + 3.54937778887819891062e2) * x
            + 9.75708501743205489753e2) * x + 1.82390916687909736289e3) * x + 2.24633760818710981792e3) * x
         + 1.65666309194161350182e3) * x + 5.57535340817727675546e2
    r = ((((5.64189583547755073984e-1 * x + 1.27536670759978104416e0) * x + 5.01905042251180477414e0) * x
          + 6.16021097993053585195e0) * x + 7.40974269950448939160e0) * x + 2.97886665372100240670e0
    s = (((((x + 2.26052863220117276590e0) * x + 9.39603524938001434673e0) * x + 1.20489539808096656605e1) * x
          + 1.70814450747565897222e1) * x + 9.60896809063285878198e0) * x + 3.36907645100081516050e0
    return exp(-x * x) * where(x < 8.0, p / q, r / s)


def erf(x):
    a = abs(x)
    far = 1.0 - erfc_tail(minimum(a, 27.0))
    return where(a < 1.0, erf_middle(x), where(x < 0.0, -far, far))


def erfc(x):
    a = abs(x)
    far = erfc_tail(minimum(a, 27.0))
    return where(a < 1.0, 1.0 - erf_middle(x), where(x < 0.0, 2.0 - far, far))


def erfinv(y):
    """A rational start, then two Newton steps, near 1 on erfc as 1 - |y| is exact."""
    a = abs(y)
    z = y * y
    p = (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) * a
    q = (((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0
    t = sqrt(-log((1.0 - a) * 0.5))
    r = ((1.641345311 * t + 3.429567803) * t - 1.624906493) * t - 1.970840454
    s = (1.6370678 * t + 3.5438892) * t + 1.0
    x = where(a <= 0.7, p / q, r / s)
    x = x + where(a <= 0.7, a - erf_middle(x), erfc(x) - (1.0 - a)) * exp(x * x) * 0.886226925452758
    x = x + where(a <= 0.7, a - erf_middle(x), erfc(x) - (1.0 - a)) * exp(x * x) * 0.886226925452758
    x = where(a == 1.0, 1.0 / (1.0 - a), x)
    return where(a == 0.0, y, where(y < 0.0, -x, x))


def lgamma_positive(x):
    """log(gamma(x)) for x > 0."""
    u = minimum(x, 14.0)
    z = 1.0 + 0.0 * u
    for _ in range(2):                                  # up to 2 <= u < 3
        low = u < 2.0
        z = where(low, z / u, z)
        u = where(low, u + 1.0, u)
    for _ in range(11):
        high = u >= 3.0
        u = where(high, u - 1.0, u)
        z = where(high, z * u, z)
    v = u - 2.0
    p = ((((-1.37825152569120859100e3 * v - 3.88016315134637840924e4) * v - 3.31612992738871184744e5) * v
          - 1.16237097492762307383e6) * v - 1.72173700820839662146e6) * v - 8.53555664245765465627e5
    q = (((((v - 3.51815701436523470549e2) * v - 1.70642106651881159223e4) * v - 2.20528590553854454839e5) * v
          - 1.13933444367982507207e6) * v - 2.53252307177582951285e6) * v - 2.01889141433532773231e6
    near = log(z) + v * p / q
    r = 1.0 / (x * x)
    tail = (((8.11614167470508450300e-4 * r - 5.95061904284301438324e-4) * r + 7.93650340457716943945e-4) * r
            - 2.77777777730099687205e-3) * r + 8.33333333333331927722e-2
    far = (x - 0.5) * log(x) - x + 0.91893853320467274178 + tail / x
    return where(x < 13.0, near, where(x > 1e305, x, far))


def lgamma(x):
    a = abs(x)
    part = a - floor(a)
    positive = lgamma_positive(where(a == 0.0, 1.0 + a, a))
    mirrored = 1.1447298858494001741 - log(a * abs(sin(3.14159265358979323846 * part))) - positive
    y = where(x > 0.0, positive, where(part == 0.0, 1.0 / part, mirrored))
    return where(a > 1e305, a, y)


def digamma(x):
    """d/dx lgamma(x)."""
    a = where(x < 0.0, 1.0 - x, x)
    w = minimum(a, 1.0) * 0.0                                   # 0 at infinity too
    for _ in range(10):
        low = a < 10.0
        w = where(low, w + 1.0 / a, w)
        a = where(low, a + 1.0, a)
    z = 1.0 / (a * a)
    tail = ((((((8.33333333333333333333e-2 * z - 2.10927960927960927961e-2) * z + 7.57575757575757575758e-3) * z
               - 4.16666666666666666667e-3) * z + 3.96825396825396825397e-3) * z - 8.33333333333333333333e-3) * z
            + 8.33333333333333333333e-2) * z
    y = log(a) - 0.5 / a - tail - w
    part = x - floor(x)
    turn = 3.14159265358979323846 * part
    y = where(x < 0.0, y - 3.14159265358979323846 * cos(turn) / sin(turn), y)
    y = where((x < 0.0) & (part == 0.0), part / part, y)
    return where(x == 0.0, -1.0 / x, y)


def polygamma(n, x):
    """The n-th derivative of digamma, n >= 1: (-1)^(n+1) n! zeta(n + 1, x), by Euler and Maclaurin; x > -14."""
    s = n + 1.0
    total = 0.0 * x
    for k in range(24):
        total = total + pow(x + k, -s)
    a = x + 24.0
    power = pow(a, -s)
    total = total + power * (a / n + 0.5)
    term = power * s / a
    square = a * a
    total = total + term / 12.0
    term = term * (s + 1.0) * (s + 2.0) / square
    total = total - term / 720.0
    term = term * (s + 3.0) * (s + 4.0) / square
    total = total + term / 30240.0
    term = term * (s + 5.0) * (s + 6.0) / square
    total = total - term / 1209600.0
    term = term * (s + 7.0) * (s + 8.0) / square
    total = total + term / 47900160.0
    sign = 1.0 - 2.0 * (s - 2.0 * floor(s * 0.5))              # -1 where s is odd
    return sign * exp(lgamma_positive(s)) * total
