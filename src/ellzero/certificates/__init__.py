"""How good is the answer? Lower bounds, gaps and proofs of optimality."""

from ellzero.certificates.certificate import Certificate, Verdict
from ellzero.certificates.certify import certify
from ellzero.certificates.incumbents import OtherObjective

__all__ = ["Certificate", "OtherObjective", "Verdict", "certify"]
