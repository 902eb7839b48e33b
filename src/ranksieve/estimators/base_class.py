"""scikit-learn's base class for estimators; on the command line one that does not load scikit-learn.

scikit-learn takes longer to load than a small fit takes, and a command needs of it only the parameters.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from ranksieve._util.program import is_program


class WithParameters:
    """An estimator whose parameters are the arguments of its constructor."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        known = inspect.signature(type(self)).parameters
        changed = (f"{k}={v!r}" for k, v in self.get_params().items() if v is not known[k].default)
        return f"{type(self).__name__}({', '.join(changed)})"


if TYPE_CHECKING or not is_program():
    from sklearn.base import BaseEstimator as BaseEstimator
else:
    BaseEstimator = WithParameters


def check_is_fitted(estimator: Any, learned: str = "n_features_in_") -> None:
    """Refuse an estimator that has not learned an attribute yet, as scikit-learn does."""
    if not hasattr(estimator, learned):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
            "arguments before using this estimator."
        )
