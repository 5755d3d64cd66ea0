"""zoo.distributions: every formula beside torch's, every sampler against its own cdf or moments."""
import inspect
import math

import numpy as np
import pytest

import zoo
from zoo import distributions as zd

R = np.random.default_rng(0)


def positive(*shape):
    return R.uniform(0.4, 3.0, shape)


def simplex(*shape):
    return (p := positive(*shape)) / p.sum(-1, keepdims=True)


def covariance(*shape):
    a = R.normal(size=(*shape, shape[-1]))
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


LOWER = np.linalg.cholesky(covariance(3))
CASES = {      # name -> (keywords of p, keywords of q, values in the support)
    "Normal": (dict(loc=R.normal(size=(2, 3)), scale=positive(3)), dict(loc=0.5, scale=positive(2, 3)),
               R.normal(size=(4, 2, 3))),
    "Laplace": (dict(loc=R.normal(size=3), scale=positive(3)), dict(loc=0.1, scale=positive(3)), R.normal(size=(2, 3))),
    "Cauchy": (dict(loc=R.normal(size=3), scale=positive(3)), None, R.normal(size=(2, 3))),
    "Gumbel": (dict(loc=R.normal(size=3), scale=positive(3)), dict(loc=0.3, scale=positive(3)), R.normal(size=(2, 3))),
    "HalfNormal": (dict(scale=positive(3)), dict(scale=positive(3)), positive(2, 3)),
    "LogNormal": (dict(loc=R.normal(size=3), scale=positive(3)), dict(loc=0.3, scale=positive(3)), positive(2, 3)),
    "Uniform": (dict(low=-positive(3), high=positive(3)), dict(low=-5.0, high=5.0), R.uniform(-0.4, 0.4, (2, 3))),
    "Exponential": (dict(rate=positive(3)), dict(rate=positive(3)), positive(2, 3)),
    "Gamma": (dict(concentration=positive(3), rate=positive(3)), dict(concentration=2.0, rate=positive(3)),
              positive(2, 3)),
    "Chi2": (dict(df=positive(3)), dict(df=positive(3)), positive(2, 3)),
    "Beta": (dict(concentration1=positive(3), concentration0=positive(3)),
             dict(concentration1=2.0, concentration0=positive(3)), R.uniform(0.1, 0.9, (2, 3))),
    "StudentT": (dict(df=positive(3) + 2, loc=0.5, scale=positive(3)), None, R.normal(size=(2, 3))),
    "Dirichlet": (dict(concentration=positive(2, 4)), dict(concentration=positive(4)), simplex(5, 2, 4)),
    "Bernoulli": (dict(probs=simplex(3)), dict(logits=R.normal(size=3)), R.integers(0, 2, (4, 3)) + 0.0),
    "Geometric": (dict(probs=simplex(3)), dict(probs=simplex(3)), R.integers(0, 5, (4, 3)) + 0.0),
    "Binomial": (dict(total_count=5, probs=simplex(3)), dict(total_count=5, logits=R.normal(size=3)),
                 R.integers(0, 6, (4, 3)) + 0.0),
    "Poisson": (dict(rate=positive(3)), dict(rate=positive(3)), R.integers(0, 6, (4, 3)) + 0.0),
    "Categorical": (dict(probs=positive(2, 4)), dict(logits=R.normal(size=(2, 4))), R.integers(0, 4, (5, 2))),
    "OneHotCategorical": (dict(logits=R.normal(size=(2, 4))), dict(probs=positive(4)),
                          np.eye(4)[R.integers(0, 4, (5, 2))]),
    "Multinomial": (dict(total_count=6, probs=simplex(4)), None, np.array([[1.0, 2, 3, 0], [6, 0, 0, 0]])),
    "MultivariateNormal": (dict(loc=R.normal(size=(2, 3)), covariance_matrix=covariance(3)),
                           dict(loc=R.normal(size=3), scale_tril=LOWER), R.normal(size=(4, 2, 3))),
    "LowRankMultivariateNormal": (
        dict(loc=R.normal(size=(2, 4)), cov_factor=R.normal(size=(4, 2)), cov_diag=positive(4)),
        dict(loc=R.normal(size=4), cov_factor=R.normal(size=(2, 4, 3)), cov_diag=positive(2, 4)),
        R.normal(size=(5, 2, 4))),
    "HalfCauchy": (dict(scale=positive(3)), None, positive(2, 3)),
    "InverseGamma": (dict(concentration=positive(3) + 4, rate=positive(3)), dict(concentration=2.0, rate=positive(3)),
                     positive(2, 3)),
    "Pareto": (dict(scale=positive(3), alpha=positive(3) + 4), dict(scale=0.1, alpha=positive(3)), positive(2, 3) + 3),
    "Weibull": (dict(scale=positive(3), concentration=positive(3) + 1), None, positive(2, 3)),
    "Kumaraswamy": (dict(concentration1=positive(3) + 1, concentration0=positive(3) + 1), None,
                    R.uniform(0.1, 0.9, (2, 3))),
    "FisherSnedecor": (dict(df1=positive(3) + 3, df2=positive(3) + 9), None, positive(2, 3)),
    "NegativeBinomial": (dict(total_count=positive(3), logits=R.normal(size=3)), None,
                         R.integers(0, 6, (4, 3)) + 0.0),
    "VonMises": (dict(loc=R.normal(size=3), concentration=np.array([0.3, 3.0, 30.0])), None, R.normal(size=(2, 3))),
    "LogisticNormal": (dict(loc=R.normal(size=(2, 3)), scale=positive(3)), None, simplex(5, 2, 4)),
    "RelaxedBernoulli": (dict(temperature=np.array(0.7), probs=simplex(3)), None, R.uniform(0.1, 0.9, (2, 3))),
    "RelaxedOneHotCategorical": (dict(temperature=np.array(0.7), logits=R.normal(size=(2, 4))), None,
                                 simplex(5, 2, 4)),
}
# What torch's own class has and ours names differently, or where torch's is wrong: (moment, class).
NO_COMPARISON = {("mode", "Multinomial"), ("mode", "Kumaraswamy")}      # torch's is nan for all parameters above 1
HEAVY = "Cauchy", "HalfCauchy", "Categorical", "VonMises"     # without a finite mean, or with one round the circle
INVERTED = "LogNormal", "Pareto", "Weibull", "Kumaraswamy"              # transformed from a base with a cdf
MOMENTS = "mean", "variance", "stddev", "mode"


def made(library, name, keywords, **tracked):
    """The distribution of either library; its float parameters, which want gradients."""
    make = library.from_numpy
    given = {k: make(np.array(v)).requires_grad_() if isinstance(v, np.ndarray) else v for k, v in keywords.items()}
    return getattr(library.distributions, name)(**given), [v for v in given.values() if not isinstance(v, (int, float))]


def agree(mine, theirs, parameters, their_parameters, what, rtol=1e-9):
    """Equal values, and equal gradients of every parameter."""
    np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=1e-11, err_msg=what)
    assert tuple(mine.shape) == tuple(theirs.shape), what
    if theirs.requires_grad and np.isfinite(theirs.detach().numpy()).all():
        import torch
        found = zoo.autograd.grad(mine.sum(), parameters, allow_unused=True, retain_graph=True)
        wanted = torch.autograd.grad(theirs.sum(), their_parameters, allow_unused=True, retain_graph=True)
        for f, w in zip(found, wanted, strict=True):
            f, w = (0.0 if g is None else g.numpy() for g in (f, w))
            np.testing.assert_allclose(f, w, rtol=1e-7, atol=1e-9, err_msg=f"gradient of {what}")


def has(distribution, what, *args):
    """Is this moment, or this method, built?"""
    try:
        found = getattr(distribution, what)
        if callable(found):
            found(*args)
    except NotImplementedError:
        return False
    return True


def both_have(p, q, what):
    """Do both libraries have it? One of them alone is an error."""
    assert has(p, what) == has(q, what), what
    return has(p, what)


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_formulas_equal_torch(name):
    torch = pytest.importorskip("torch")
    keywords, other, values = CASES[name]
    (p, mine), (q, theirs) = made(zoo, name, keywords), made(torch, name, keywords)
    assert (tuple(p.batch_shape), tuple(p.event_shape)) == (tuple(q.batch_shape), tuple(q.event_shape))
    assert p.has_enumerate_support == q.has_enumerate_support
    x, y = zoo.from_numpy(values), torch.from_numpy(values)
    agree(p.log_prob(x), q.log_prob(y), mine, theirs, "log_prob")
    for moment in MOMENTS:
        if (moment, name) not in NO_COMPARISON and both_have(p, q, moment):
            agree(getattr(p, moment), getattr(q, moment), mine, theirs, moment)
    for method, at in (("cdf", values), ("icdf", R.uniform(0.05, 0.95, values.shape))):
        if method in vars(type(p)) or name in ("HalfCauchy", "HalfNormal", *INVERTED):
            found, wanted = getattr(p, method)(zoo.from_numpy(at)), getattr(q, method)(torch.from_numpy(at))
            agree(found, wanted, mine, theirs, method)
    if name != "Poisson" and both_have(p, q, "entropy"):
        float32 = name == "Multinomial"          # torch takes lgamma of an int64 tensor, which is a float32 there
        agree(p.entropy(), q.entropy(), mine, theirs, "entropy", 1e-7 if float32 else 1e-9)
    if p.has_enumerate_support:
        agree(p.enumerate_support(), q.enumerate_support(), [], [], "enumerate_support")
    if other is not None:
        p2, q2 = made(zoo, name, other)[0], made(torch, name, other)[0]
        agree(zd.kl_divergence(p, p2), torch.distributions.kl_divergence(q, q2), mine, theirs, "kl_divergence")
    wide, theirs_wide = (d.expand((7, *d.batch_shape)) for d in (p, q))
    agree(wide.log_prob(x[:1]), theirs_wide.log_prob(y[:1]), mine, theirs, "expand")


@pytest.mark.parametrize("name", CASES)
def test_samples_have_the_moments(name):
    """Mean and variance of 20,000 draws within five standard errors, of finite moments."""
    zoo.manual_seed(1)
    p, _ = made(zoo, name, CASES[name][0])
    x = p.sample((20000,))
    assert tuple(x.shape) == (20000, *p.batch_shape, *p.event_shape) and not x.requires_grad
    assert p.support is None or bool(p.support.check(x).all())
    if name in HEAVY or not has(p, "mean"):
        return
    x, mean, variance = x.double().numpy(), p.mean.detach().numpy(), p.variance.detach().numpy()
    assert (abs(x.mean(0) - mean) < 5 * np.sqrt(variance / len(x)) + 1e-12).all()
    spread = ((x - mean) ** 2 - variance).std(0) / math.sqrt(len(x))
    assert (abs(((x - mean) ** 2).mean(0) - variance) < 6 * spread + 1e-12).all()


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.99, 10.01, 40.0, 1000.0])
def test_poisson_numbers_have_their_probabilities(rate):
    """Both samplers: frequencies against the probabilities, chi squared over the middle of the distribution."""
    zoo.manual_seed(2)
    p = zd.Poisson(zoo.tensor(rate, dtype=zoo.float64))
    x = p.sample((40000,)).numpy()
    low, high = (max(0, int(rate + s * math.sqrt(rate))) for s in (-2, 3))
    k = np.arange(low, high + 1)
    expected = len(x) * np.exp(p.log_prob(zoo.from_numpy(k + 0.0)).numpy())
    found = np.array([(x == n).sum() for n in k])
    assert ((found - expected) ** 2 / expected).sum() < len(k) + 5 * math.sqrt(2 * len(k))


def test_angles_have_their_circular_moments():
    """E[cos(x - loc)] = 1 - variance and E[sin(x - loc)] = 0, within five standard errors; small k is near uniform."""
    zoo.manual_seed(4)
    p = zd.VonMises(zoo.tensor([0.5, -3.0, 1.0, 2.0]), zoo.tensor([1e-6, 0.5, 4.0, 200.0]))
    x = p.sample((20000,))
    assert bool(((x >= -math.pi) & (x <= math.pi)).all())
    for found, wanted in (((x - p.loc).cos(), 1 - p.variance), ((x - p.loc).sin(), p.loc * 0)):
        error = found.std(0) / math.sqrt(len(x))
        assert bool(((found.mean(0) - wanted).abs() < 5 * error + 1e-6).all())


def test_categorical_draws_have_their_probabilities():
    zoo.manual_seed(3)
    probs = np.array([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])
    x = zd.Categorical(zoo.from_numpy(probs)).sample((3, 5000)).numpy()
    assert x.shape == (3, 5000, 2) and x.dtype == np.int64
    found = (x[..., None] == np.arange(3)).mean((0, 1))
    assert abs(found - probs).max() < 0.02 and found[1, 1] == 0


@pytest.mark.parametrize("name", [n for n in CASES if getattr(zd, n).has_rsample is True])
def test_rsample_carries_gradients(name):
    """d E[x] / d parameter, which is exact for a location: each sample's gradient of loc is 1."""
    p, parameters = made(zoo, name, CASES[name][0])
    x = p.rsample((5,))
    gradients = zoo.autograd.grad(x.sum(), parameters)
    assert all(bool(g.isfinite().all()) for g in gradients)
    if name in ("Normal", "Laplace", "Gumbel", "Cauchy"):
        np.testing.assert_allclose(gradients[0].numpy(), x.numel() / parameters[0].numel())


@pytest.mark.parametrize("a", [0.01, 0.4, 0.99, 1.5, 4.0, 7.0, 30.0, 300.0])
def test_slope_of_gamma_numbers(a):
    """-(dF/da) / f with F by mpmath, in both tails and between, on both sides of where the method changes."""
    mp = pytest.importorskip("mpmath")
    from zoo.distributions.gamma_slope import slope
    for x in (1e-8, a / 5, 0.999, 1.001, 0.999 * a, 1.001 * a, 2 * a + 1):
        with mp.workdps(40):
            below = mp.diff(lambda b, x=x: mp.gammainc(b, 0, x, regularized=True), mp.mpf(a))
            wanted = float(-below * mp.gamma(a) * mp.exp(x) / mp.mpf(x) ** (a - 1))
        for dtype, rtol in ((zoo.float64, 2e-8), (zoo.float32, 1e-6 * max(1, a))):
            found = slope(zoo.tensor(a, dtype=dtype), zoo.tensor(x, dtype=dtype)).item()
            assert found == pytest.approx(wanted, rel=rtol) or dtype == zoo.float32 and abs(x - a) < 1e-2


@pytest.mark.parametrize("name, statistic", [
    ("Gamma", "mean"), ("Gamma", "variance"), ("Chi2", "mean"), ("Beta", "mean"), ("Beta", "variance"),
    ("Dirichlet", "mean"), ("Dirichlet", "variance"), ("StudentT", "variance")])
def test_gradients_of_draws_are_those_of_the_moments(name, statistic):
    """The gradient of the mean (or second moment about it) of 40,000 draws, and that of the formula."""
    zoo.manual_seed(5)
    keywords = {k: v + 6.0 if k == "df" and name == "StudentT" else v for k, v in CASES[name][0].items()}
    p, parameters = made(zoo, name, keywords)
    weight = zoo.from_numpy(R.normal(size=p.batch_shape + p.event_shape))
    x = p.rsample((40000,))
    moment = x.mean(0) if statistic == "mean" else ((x - p.mean) ** 2).mean(0)
    found = zoo.autograd.grad((moment * weight).sum(), parameters, allow_unused=True, retain_graph=True)
    wanted = zoo.autograd.grad((getattr(p, statistic) * weight).sum(), parameters, allow_unused=True)
    scale = max(float(w.abs().max()) for w in wanted if w is not None)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(0.0 if f is None else f.numpy(), 0.0 if w is None else w.numpy(), atol=0.06 * scale)


@pytest.mark.torch
def test_gamma_gradients_are_near_torchs():
    """torch's are approximations, good to about 1e-3."""
    torch = pytest.importorskip("torch")
    from zoo.distributions.gamma_slope import slope
    a = np.exp(R.uniform(-3, 6, 500))
    x = np.maximum(R.gamma(a), 1e-30)
    np.testing.assert_allclose(slope(zoo.tensor(a), zoo.tensor(x)).numpy(),
                               torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy(), rtol=2e-3)


@pytest.mark.torch
def test_transforms_equal_torch():
    torch = pytest.importorskip("torch")
    x = R.normal(size=(3, 4))
    loc, scale = R.normal(size=4), -positive(4)

    def chain(library):
        t = library.distributions.transforms
        a, b = library.from_numpy(loc), library.from_numpy(scale)
        return [t.ExpTransform(), t.SigmoidTransform(), t.TanhTransform(), t.AffineTransform(a, b),
                t.ComposeTransform([t.AffineTransform(0.3, 0.5), t.TanhTransform()]),
                t.ComposeTransform([t.AffineTransform(a, b, event_dim=1), t.SigmoidTransform()]),
                t.SoftplusTransform(), t.StickBreakingTransform(), t.IndependentTransform(t.TanhTransform(), 1),
                t.ReshapeTransform((4,), (2, 2)), t.ComposeTransform([t.ExpTransform(), t.PowerTransform(-0.7)]),
                t.ComposeTransform([t.StickBreakingTransform(), t.AffineTransform(0.1, 2.0, event_dim=1)])]

    for mine, theirs in zip(chain(zoo), chain(torch), strict=True):
        u, v = zoo.from_numpy(x), torch.from_numpy(x)
        y, z = mine(u), theirs(v)
        agree(y, z, [], [], f"{mine}")
        agree(mine.inv(y), theirs.inv(z), [], [], f"{mine}.inv")
        agree(mine.log_abs_det_jacobian(u, y), theirs.log_abs_det_jacobian(v, z), [], [], "jacobian")
        assert tuple(mine.forward_shape((3, 4))) == tuple(theirs.forward_shape((3, 4))) == tuple(y.shape)
        assert tuple(mine.inverse_shape(y.shape)) == tuple(theirs.inverse_shape(z.shape)) == (3, 4)
        assert (mine.domain.event_dim, mine.codomain.event_dim) == (theirs.domain.event_dim, theirs.codomain.event_dim)
    for name in ("AbsTransform", "SoftmaxTransform"):
        mine, theirs = getattr(zd, name)(), getattr(torch.distributions, name)()
        y, z = mine(zoo.from_numpy(x)), theirs(torch.from_numpy(x))
        agree(y, z, [], [], name)
        agree(mine.inv(y), theirs.inv(z), [], [], f"{name}.inv")
    with pytest.raises(ValueError, match="ReshapeTransform"):
        zd.ReshapeTransform((4,), (3,))

    def squashed(library):
        d = library.distributions
        base = d.Independent(d.Normal(library.from_numpy(loc), library.from_numpy(-scale)), 1)
        return d.TransformedDistribution(base, [d.transforms.TanhTransform(), d.transforms.AffineTransform(1.0, 2.0)])

    value = 1 + 2 * np.tanh(x)
    found, wanted = (squashed(library).log_prob(library.from_numpy(value)) for library in (zoo, torch))
    agree(found, wanted, [], [], "sum")
    assert tuple(squashed(zoo).rsample((6,)).shape) == (6, 4)


@pytest.mark.torch
def test_mixtures_and_independents_equal_torch():
    torch = pytest.importorskip("torch")
    weights, locs, scales, x = simplex(2, 3), R.normal(size=(2, 3, 4)), positive(2, 3, 4), R.normal(size=(5, 2, 4))

    def mixture(library):
        d, make = library.distributions, library.from_numpy
        return d.MixtureSameFamily(d.Categorical(make(weights)), d.Independent(d.Normal(make(locs), make(scales)), 1))

    mine, theirs = mixture(zoo), mixture(torch)
    agree(mine.log_prob(zoo.from_numpy(x)), theirs.log_prob(torch.from_numpy(x)), [], [], "log_prob")
    agree(mine.mean, theirs.mean, [], [], "mean")
    agree(mine.variance, theirs.variance, [], [], "variance")
    zoo.manual_seed(0)
    draws = mine.sample((20000,)).numpy()
    assert abs(draws.mean(0) - mine.mean.numpy()).max() < 0.08
    pairs = [library.distributions.Independent(library.distributions.Normal(
        library.from_numpy(locs), library.from_numpy(scales)), 2) for library in (zoo, torch)]
    agree(pairs[0].entropy(), pairs[1].entropy(), [], [], "entropy")
    agree(zd.kl_divergence(pairs[0], pairs[0]), torch.distributions.kl_divergence(pairs[1], pairs[1]), [], [], "kl")


@pytest.mark.parametrize("wrong", [
    lambda: zd.Normal(0.0, -1.0), lambda: zd.Normal(0.0, zoo.tensor(float("nan"))), lambda: zd.Bernoulli(probs=1.5),
    lambda: zd.Bernoulli(), lambda: zd.Bernoulli(0.5, 0.5), lambda: zd.Uniform(1.0, 1.0),
    lambda: zd.Categorical(probs=zoo.tensor(0.5)), lambda: zd.Categorical(logits=zoo.tensor([float("nan"), 0.0])),
    lambda: zd.Exponential(1.0).log_prob(zoo.tensor(-1.0)), lambda: zd.Normal(zoo.zeros(3), 1.0).log_prob(zoo.zeros(2)),
    lambda: zd.Categorical(zoo.ones(3)).log_prob(zoo.tensor(3)), lambda: zd.Bernoulli(0.5).log_prob(zoo.tensor(0.5)),
    lambda: zd.Independent(zd.Normal(0.0, 1.0), 1), lambda: zd.MultivariateNormal(zoo.zeros(2)),
    lambda: zd.MultivariateNormal(zoo.zeros(2), -zoo.eye(2)), lambda: zd.Dirichlet(zoo.tensor(1.0)),
])
def test_wrong_parameters_and_values_are_named(wrong):
    with pytest.raises(ValueError, match="[A-Z][a-z]+"):
        wrong()


def test_what_is_not_built_says_so():
    with pytest.raises(NotImplementedError, match="Poisson: rsample"):
        zd.Poisson(1.0).rsample()
    with pytest.raises(NotImplementedError, match="Cauchy and Normal"):
        zd.kl_divergence(zd.Cauchy(0.0, 1.0), zd.Normal(0.0, 1.0))
    with pytest.raises(TypeError, match="str"):
        zd.Normal("a", 1.0)


def test_checks_can_be_switched_off():
    assert zd.Normal(0.0, -1.0, validate_args=False).scale == -1
    zd.Distribution.set_default_validate_args(False)
    try:
        zd.Exponential(1.0).log_prob(zoo.tensor(-1.0))
    finally:
        zd.Distribution.set_default_validate_args(True)


@pytest.mark.cuda
def test_on_the_gpu():
    """Everything is made of ops, so the device is the parameters'."""
    for p in (zd.Normal(zoo.zeros(3, device="cuda"), 1.0), zd.Categorical(zoo.ones(2, 3, device="cuda")),
              zd.Gamma(zoo.ones(3, device="cuda"), 1.0), zd.Poisson(zoo.full((3,), 20.0, device="cuda"))):
        x = p.sample((4,))
        assert x.device.type == "cuda" and p.log_prob(x).device.type == "cuda"
        assert bool(p.log_prob(x).isfinite().all())


def test_every_public_class_is_tested():
    shown = {n for n, c in vars(zd).items() if inspect.isclass(c) and issubclass(c, zd.Distribution)}
    others = {"Distribution", "Independent", "MixtureSameFamily", "TransformedDistribution",
              "OneHotCategoricalStraightThrough"}
    assert shown - others == set(CASES)
