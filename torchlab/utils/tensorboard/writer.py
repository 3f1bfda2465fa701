"""`SummaryWriter`: the calls with which a program tells TensorBoard what it does."""

from __future__ import annotations

import datetime
import os
import pathlib
import socket
import time
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog

from torchlab.utils.tensorboard import embeddings, images, summary
from torchlab.utils.tensorboard.arrays import to_array
from torchlab.utils.tensorboard.files import FileWriter
from torchlab.utils.tensorboard.graph import graph
from torchlab.utils.tensorboard.histograms import default_edges
from torchlab.utils.tensorboard.hyperparameters import hparams

Step = Any  # int, None, a number of NumPy's or a tensor with one


class SummaryWriter:
    """Writes event files for TensorBoard into a folder.

    log_dir: the folder; without it runs/<date and time>_<host><comment>. purge_step: TensorBoard
    forgets what a run that broke off had written from this step on. max_queue, flush_secs: how many
    events wait, and how long, before they are written. All steps are `global_step`, all times
    `walltime`, in seconds since 1970.

    Source: https://docs.pytorch.org/docs/2.13/tensorboard.html
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[Any, FileWriter] | None = None
        self._get_file_writer()
        self.default_bins = default_edges()

    def _get_file_writer(self) -> FileWriter:
        """The writer of this folder; a new one after `close`."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = FileWriter(
                self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix
            )
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            step = self.purge_step
            if step is not None:
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=start))
                self.purge_step = None
        return self.file_writer

    def _add(self, message: Any, step: Step, walltime: float | None) -> None:
        self._get_file_writer().add_summary(message, step, walltime)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None, run_name: str | None = None,
        global_step: Step = None,
    ) -> None:  # fmt: skip
        """A set of hyperparameters and the metrics it reached, as a run in a folder of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(str(self.log_dir), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for message in messages:
                run._add(message, global_step, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Step = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number: Python's, NumPy's, or a tensor of one element."""
        message = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(message, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Step = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Several numbers for one chart, each as a run in a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = os.fspath(self._get_file_writer().get_logdir())
        writers = self.all_writers
        assert writers is not None
        for tag, value in tag_scalar_dict.items():
            path = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if path not in writers:
                writers[path] = FileWriter(
                    path, self.max_queue, self.flush_secs, self.filename_suffix
                )
            writers[path].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Step = None, walltime: float | None = None
    ) -> None:
        """A tensor as it is."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Step = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """How often which values are in a tensor or an array. `bins`: "tensorflow", or what
        numpy.histogram takes."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any,
        bucket_limits: Any, bucket_counts: Any, global_step: Step = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that was made elsewhere. ValueError for other numbers of limits than of
        counts."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        message = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(message, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Step = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """A picture: floats of 0 to 1, or bytes; `dataformats` names its dims (CHW, HWC, HW)."""
        message = summary.image(tag, img_tensor, dataformats=dataformats)
        self._add(message, global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Step = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Several pictures in a grid, eight in a row."""
        message = summary.image(tag, img_tensor, dataformats=dataformats)
        self._add(message, global_step, walltime)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Step = None,
        walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:  # fmt: skip
        """A picture with boxes (N, 4: left, top, right, bottom) and their labels."""
        if labels is not None:
            labels = [labels] if isinstance(labels, str) else labels
            if len(labels) != box_tensor.shape[0]:
                labels = None
        message = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(message, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Step = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A matplotlib figure, or a list of them; `close` closes them."""
        a = images.of_figures(figure, close)
        formats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, a, global_step, walltime, dataformats=formats)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Step = None, fps: float = 4,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Films (N, T, C, H, W), as a GIF. (PyTorch needs the package moviepy for it.)"""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Step = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A sound: samples of -1 to 1, one channel."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Step = None, walltime: float | None = None
    ) -> None:
        """A text, in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not to be had: torch.onnx's files are shown by tools for ONNX."""
        raise NotImplementedError(
            "add_onnx_graph: give the module and an input to add_graph; a file of torch.onnx is"
            " shown by tools for ONNX, netron for one"
        )

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:  # fmt: skip
        """The operators of one call of a module, in eval mode, in the scopes of its modules."""
        self._get_file_writer().add_graph(graph(model, input_to_model, verbose))

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Step = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Vectors (N, D) for the projector, with labels and pictures (N, C, H, W)."""
        step = str(0 if global_step is None else global_step).zfill(5)
        folder = f"{step}/{embeddings.folder_name(tag)}"
        log_dir = os.fspath(self._get_file_writer().get_logdir())
        info = embeddings.write(log_dir, folder, tag, mat, metadata, metadata_header, label_img)
        config = pathlib.Path(log_dir, "projector_config.pbtxt")
        with config.open("a") as file:
            file.write(embeddings.text(info))

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Step = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall of `predictions` (0 to 1) for `labels` (0 or 1)."""
        message = summary.pr_curve(
            tag, to_array(labels), to_array(predictions), num_thresholds, weights
        )
        self._add(message, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
        true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
        global_step: Step = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision over recall, with the counts made elsewhere."""
        message = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall, num_thresholds, weights,
        )  # fmt: skip
        self._add(message, global_step, walltime)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart with several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart with a scalar between its lower and its upper bound: three tags."""
        if len(tags) != 3:
            raise AssertionError(f"a margin chart has 3 tags, not {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: Any) -> None:
        """All charts of several scalars: {category: {chart: [kind, tags]}}, once for a writer."""
        self._get_file_writer().add_summary(summary.custom_scalars(layout))

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: Any = None, global_step: Step = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Points and triangles in space."""
        message = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._add(message, global_step, walltime)

    def flush(self) -> None:
        """Wait until everything is on disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and end; another call begins a new file."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


__all__ = ["SummaryWriter"]
