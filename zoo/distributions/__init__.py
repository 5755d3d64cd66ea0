"""Probability distributions with torch.distributions' names: sample, rsample, log_prob, entropy, kl_divergence.

Not built: rsample of Gamma, Beta, Dirichlet and StudentT, whose has_rsample is False.
"""
from zoo.distributions import constraints as constraints
from zoo.distributions import transforms as transforms
from zoo.distributions.composed import Independent as Independent
from zoo.distributions.composed import MixtureSameFamily as MixtureSameFamily
from zoo.distributions.composed import MultivariateNormal as MultivariateNormal
from zoo.distributions.continuous import Cauchy as Cauchy
from zoo.distributions.continuous import Exponential as Exponential
from zoo.distributions.continuous import Gumbel as Gumbel
from zoo.distributions.continuous import HalfNormal as HalfNormal
from zoo.distributions.continuous import Laplace as Laplace
from zoo.distributions.continuous import Normal as Normal
from zoo.distributions.continuous import Uniform as Uniform
from zoo.distributions.discrete import Bernoulli as Bernoulli
from zoo.distributions.discrete import Binomial as Binomial
from zoo.distributions.discrete import Categorical as Categorical
from zoo.distributions.discrete import Geometric as Geometric
from zoo.distributions.discrete import Multinomial as Multinomial
from zoo.distributions.discrete import OneHotCategorical as OneHotCategorical
from zoo.distributions.discrete import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from zoo.distributions.discrete import Poisson as Poisson
from zoo.distributions.distribution import Distribution as Distribution
from zoo.distributions.gamma import Beta as Beta
from zoo.distributions.gamma import Chi2 as Chi2
from zoo.distributions.gamma import Dirichlet as Dirichlet
from zoo.distributions.gamma import Gamma as Gamma
from zoo.distributions.gamma import StudentT as StudentT
from zoo.distributions.kl import kl_divergence as kl_divergence
from zoo.distributions.kl import register_kl as register_kl
from zoo.distributions.transforms import AffineTransform as AffineTransform
from zoo.distributions.transforms import ComposeTransform as ComposeTransform
from zoo.distributions.transforms import ExpTransform as ExpTransform
from zoo.distributions.transforms import LogNormal as LogNormal
from zoo.distributions.transforms import SigmoidTransform as SigmoidTransform
from zoo.distributions.transforms import TanhTransform as TanhTransform
from zoo.distributions.transforms import Transform as Transform
from zoo.distributions.transforms import TransformedDistribution as TransformedDistribution
