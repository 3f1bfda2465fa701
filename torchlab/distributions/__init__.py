"""`torchlab.distributions`: probability distributions, transforms and divergences.

With the same seed the draws are PyTorch's on the CPU.

Source: https://docs.pytorch.org/docs/2.13/distributions.html
"""

from __future__ import annotations

from torchlab.distributions.bernoulli import Bernoulli
from torchlab.distributions.beta import Beta
from torchlab.distributions.binomial import Binomial
from torchlab.distributions.categorical import Categorical
from torchlab.distributions.cauchy import Cauchy
from torchlab.distributions.chi2 import Chi2
from torchlab.distributions.constraint_registry import biject_to, transform_to
from torchlab.distributions.continuous_bernoulli import ContinuousBernoulli
from torchlab.distributions.dirichlet import Dirichlet
from torchlab.distributions.distribution import Distribution
from torchlab.distributions.exp_family import ExponentialFamily
from torchlab.distributions.exponential import Exponential
from torchlab.distributions.fishersnedecor import FisherSnedecor
from torchlab.distributions.gamma import Gamma
from torchlab.distributions.generalized_pareto import GeneralizedPareto
from torchlab.distributions.geometric import Geometric
from torchlab.distributions.gumbel import Gumbel
from torchlab.distributions.half_cauchy import HalfCauchy
from torchlab.distributions.half_normal import HalfNormal
from torchlab.distributions.independent import Independent
from torchlab.distributions.inverse_gamma import InverseGamma
from torchlab.distributions.kl import kl_divergence, register_kl
from torchlab.distributions.kumaraswamy import Kumaraswamy
from torchlab.distributions.laplace import Laplace
from torchlab.distributions.lkj_cholesky import LKJCholesky
from torchlab.distributions.log_normal import LogNormal
from torchlab.distributions.logistic_normal import LogisticNormal
from torchlab.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from torchlab.distributions.mixture_same_family import MixtureSameFamily
from torchlab.distributions.multinomial import Multinomial
from torchlab.distributions.multivariate_normal import MultivariateNormal
from torchlab.distributions.negative_binomial import NegativeBinomial
from torchlab.distributions.normal import Normal
from torchlab.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from torchlab.distributions.pareto import Pareto
from torchlab.distributions.poisson import Poisson
from torchlab.distributions.relaxed_bernoulli import RelaxedBernoulli
from torchlab.distributions.relaxed_categorical import RelaxedOneHotCategorical
from torchlab.distributions.studentT import StudentT
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from torchlab.distributions.uniform import Uniform
from torchlab.distributions.von_mises import VonMises
from torchlab.distributions.weibull import Weibull
from torchlab.distributions.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "Poisson",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "TransformedDistribution",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "Transform",
    "identity_transform",
]
