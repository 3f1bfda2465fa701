"""What may stand for a number in a call, and what may not."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl


class TestOtherNumbers:
    """What may stand for a number; PyTorch 2.13 takes and refuses the same."""

    ONE_INT = [np.int64(1), np.uint8(1), tl.tensor(1), tl.tensor(1, dtype=tl.int32)]
    NO_INT = [True, 1.0, np.float32(1), np.bool_(True), np.array(1.0), tl.tensor(1.0), "1", [1]]

    @pytest.mark.parametrize("one", ONE_INT, ids=repr)
    def test_integers(self, one):
        x = tl.arange(6.0).reshape(2, 3)
        assert x.unsqueeze(one).shape == (2, 1, 3)
        assert x.transpose(0, one).shape == (3, 2)
        assert x.select(one, 1).tolist() == [1, 4]
        assert tl.softmax(x, one).shape == (2, 3)
        assert tl.cat([x, x], dim=one).shape == (2, 6)
        assert tl.argmax(x, one).tolist() == [2, 2]
        assert tl.tril(x, diagonal=one).tolist() == [[0, 1, 0], [3, 4, 5]]
        assert x.chunk(one)[0].shape == (2, 3)
        assert x.squeeze(one).shape == (2, 3)
        assert tl.movedim(x, one, 0).shape == (3, 2)
        assert tl.nn.functional.one_hot(tl.tensor([0]), one).tolist() == [[1]]

    @pytest.mark.parametrize("one", ONE_INT, ids=repr)
    def test_one_integer_for_a_list(self, one):
        x = tl.arange(6.0).reshape(2, 3)
        for f in (tl.sum, tl.mean, tl.std, tl.amax, tl.logsumexp, tl.count_nonzero, tl.all):
            assert f(x, one).equal(f(x, 1)), f
        assert tl.var_mean(x, one)[1].tolist() == [1, 4]
        assert tl.fft.fftn(x, dim=one).shape == (2, 3)
        assert tl.roll(x, one, one).tolist() == [[2, 0, 1], [5, 3, 4]]
        assert tl.conv1d(tl.ones(1, 1, 3), tl.ones(1, 1, 2), None, one).tolist() == [[[2, 2]]]
        image = tl.ones(1, 1, 4, 4)
        F = tl.nn.functional
        assert F.max_pool2d(image, one).shape == (1, 1, 4, 4)
        assert F.avg_pool2d(image, one, one).shape == (1, 1, 4, 4)
        assert F.adaptive_avg_pool2d(image, (one, one)).shape == (1, 1, 1, 1)
        assert tl.zeros(one, one).shape == (1, 1)
        assert x.new_ones(one).shape == (1,) and x.reshape(one, 6).shape == (1, 6)

    def test_numpys_integers_in_modules(self):
        i = np.int64(2)
        image = tl.ones(1, 2, 4, 4)
        assert tl.nn.Conv2d(i, i, i, stride=i, padding=np.int64(1))(image).shape == (1, 2, 3, 3)
        assert tl.nn.MaxPool2d(i, i)(image).shape == (1, 2, 2, 2)
        assert tl.nn.Unfold(i)(image).shape == (1, 8, 9)
        assert tl.nn.LayerNorm(np.int64(4))(image).shape == image.shape
        assert repr(tl.nn.LayerNorm(np.int64(4))).startswith("LayerNorm((np.int64(4),)")
        assert tl.nn.TransformerEncoderLayer(np.int64(4), i).norm1.normalized_shape == (4,)

    @pytest.mark.parametrize("wrong", NO_INT, ids=repr)
    def test_no_integers(self, wrong):
        x = tl.ones(2, 3)
        calls = [
            ("unsqueeze", lambda: x.unsqueeze(wrong)), ("cumsum", lambda: x.cumsum(wrong)),
            ("softmax", lambda: tl.softmax(x, wrong)), ("select", lambda: x.select(wrong, 0)),
            ("transpose", lambda: x.transpose(0, wrong)), ("unbind", lambda: x.unbind(wrong)),
        ]
        for name, call in calls:
            said = rf"{name}\(\): argument 'dim[01]?' .*must be int, not"
            with pytest.raises(TypeError, match=said):
                call()

    @pytest.mark.parametrize(
        "two", [np.float32(2), np.int64(2), tl.tensor(2.0), tl.tensor(2), np.float64(2)], ids=repr
    )
    def test_floats_and_scalars(self, two):
        x = tl.tensor([1.0, -1.0])
        F = tl.nn.functional
        assert tl.add(x, x, alpha=two).tolist() == [3, -3]
        assert x.clone().add_(x, alpha=two).tolist() == [3, -3]
        assert tl.add(x, x, alpha=two, out=tl.empty(2)).tolist() == [3, -3]
        assert F.leaky_relu(x, two).tolist() == [1, -2]
        assert F.leaky_relu_(x.clone(), two).tolist() == [1, -2]
        assert F.hardtanh(x, two, 3.0).tolist() == [2, 2]
        assert tl.nan_to_num(tl.tensor([float("nan")]), two).tolist() == [2]
        assert tl.renorm(tl.eye(2), two, 0, two).tolist() == [[1, 0], [0, 1]]
        assert tl.norm(tl.tensor([3.0, 4.0]), two).item() == 5
        assert F.huber_loss(x, x + 4, delta=two).item() == 6  # 2·(4 − 1)
        tl.manual_seed(0)
        a = tl.empty(3, dtype=tl.float64).uniform_(two, 3)
        tl.manual_seed(0)
        assert a.equal(tl.empty(3, dtype=tl.float64).uniform_(2, 3))
        tl.manual_seed(0)
        a = tl.empty(3).normal_(mean=two, std=two)
        tl.manual_seed(0)
        assert a.equal(tl.empty(3).normal_(2, 2))

    @pytest.mark.parametrize(
        "wrong", [np.array(1.0), tl.ones(1), tl.ones((), requires_grad=True), "a", [1.0]], ids=repr
    )
    def test_no_floats(self, wrong):
        x = tl.ones(2)
        for call, kind in (
            (lambda: tl.add(x, x, alpha=wrong), "Number"),
            (lambda: tl.dropout(x, wrong, False), "float"),
            (lambda: tl.nn.functional.leaky_relu(x, wrong), "Number"),
            (lambda: tl.isclose(x, x, wrong), "float"),
            (lambda: x.clone().normal_(0, wrong), "float"),
        ):
            with pytest.raises(TypeError, match=f"must be {kind}, not"):
                call()

    def test_nothing_stands_for_a_bool(self):
        x = tl.ones(2, 2)
        for wrong in (np.bool_(True), tl.tensor(True), 1):
            with pytest.raises(TypeError, match="'keepdim' .*must be bool, not"):
                tl.sum(x, 0, wrong)
            with pytest.raises(TypeError, match="must be bool, not"):
                tl.std(x, 0, wrong)

    def test_sizes_of_new_tensors(self):
        for wrong in (True, 1.0, np.array(1.0), tl.tensor(2.0), tl.ones(2)):
            with pytest.raises(TypeError):
                tl.zeros(wrong, 2)
        with pytest.raises(TypeError, match="found element of type float at pos 1"):
            tl.ones(2, 1.5)

    def test_numbers_for_quantiles_and_bounds(self):
        x = tl.arange(5.0)
        assert tl.quantile(x, np.float32(0.5)).item() == 2
        assert tl.bucketize(np.float32(0.5), x).item() == 1
        assert tl.searchsorted(x, np.int64(2)).item() == 2

    def test_a_tensor_that_is_no_number_stays_one(self):
        with pytest.raises(TypeError):
            tl.where(tl.tensor(True), tl.tensor(1), "a")
        assert tl.tensor(np.int32(1)).dtype is tl.int32

    def test_integers_beyond_64_bits(self):
        i, f = tl.tensor([1, 2]), tl.ones(2)
        for call in (
            lambda: i + 2**70, lambda: f * 2**70, lambda: f > 2**64, lambda: f.clone().fill_(2**70),
            lambda: tl.add(f, f, alpha=2**70), lambda: tl.full((2,), 2**70), lambda: 2**70 - f,
        ):
            with pytest.raises(OverflowError, match="int too big to convert"):
                call()
        with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
            f.lt(-(2**64))
        assert (i + 2**63).tolist() == [1 - 2**63, 2 - 2**63]  # read as unsigned, wrapped around
        assert (f + 2**63).tolist() == [2.0**63, 2.0**63]
