"""What there is to say about a trained model, for the commands that make one or look at one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcond.cli.output import Voice
    from gcond.training.trained_model import TrainedModel


def show_model(file: Path, voice: Voice) -> None:
    """``gcond inspect`` of a model."""
    from gcond.reports.tables import assignments, facts
    from gcond.training.trained_model import TrainedModel

    model = TrainedModel.load(file)
    record = model.record
    about = {"file": str(file), "holds": "a trained model", **model_facts(model)}
    about["recipe"] = assignments(record.recipe)
    about["source"] = f"{record.source.get('name')}, sha256 {str(record.source.get('sha256'))[:12]}…"
    about["made by"] = f"gcond {record.gcond_version}"
    about["sha256"] = model.sha256
    voice.result({"file": str(file), "kind": "model", **model_payload(model)}, facts(about).rich())


def model_facts(model: TrainedModel) -> dict[str, str]:
    """Facts for people."""
    from gcond.config import settings
    from gcond.reports.tables import percent

    record = model.record
    chosen = f", the best on validation nodes of {record.runs} runs" if record.runs > 1 else ""
    reached = {"validation": record.val_accuracy, "test": record.test_accuracy}
    scores = [f"{percent(share)} % of {part} nodes" for part, share in reached.items() if share is not None]
    return {
        "model": settings.spelled(model.model.name, model.model),
        "trained on": model.trained_on,
        "notes": "\n".join(record.notes),
        "takes": f"{record.num_features:,} features, {_kind(record.transform)}, {record.setting}",
        "gives": _classes(model),
        "accuracy": ", ".join(scores),
        "seed": f"{record.seed}{chosen}",
    }


def model_payload(model: TrainedModel) -> dict[str, Any]:
    """The same for programs."""
    record = model.record.to_json()
    # The statistics of a transform are as long as the feature list.
    record |= {"transform": record["transform"].get("kind"), "class_names": list(model.class_names)}
    return {"model": model.model.name, "settings": _settings(model), "sha256": model.sha256, **record}


def _settings(model: TrainedModel) -> dict[str, Any]:
    from gcond.config import settings

    return settings.as_dict(model.model)


def _kind(transform: dict[str, Any]) -> str:
    kind = str(transform.get("kind"))
    return "as they are" if kind == "none" else kind


def _classes(model: TrainedModel) -> str:
    names = model.class_names
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f"{len(names):,} class{'' if len(names) == 1 else 'es'}: {shown}"
