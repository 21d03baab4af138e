# A small unittest run with its report captured.
import io
import unittest
from unittest import mock


class T(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = [1]

    def setUp(self):
        self.addCleanup(lambda: log.append("cleanup"))
        log.append(f"setUp {self._testMethodName}")

    def tearDown(self):
        log.append("tearDown")

    def test_equal(self):
        self.assertEqual([1, 2], [1, 2])
        self.assertAlmostEqual(0.1 + 0.2, 0.3)
        self.assertIn("a", "abc")
        self.assertRegex("abc", r"b.$")
        self.assertCountEqual([1, 2], [2, 1])

    def test_fails(self):
        self.assertEqual({"a": 1}, {"a": 2})

    def test_errors(self):
        raise KeyError("boom")

    def test_raises(self):
        with self.assertRaisesRegex(ValueError, "inv") as cm:
            int("x")
        self.assertIn("literal", str(cm.exception))

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.assertTrue(False)

    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertLess(i, 2)


class A(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        self.assertEqual(await self.later(), 5)

    async def later(self):
        return 5


log = []
out = io.StringIO()
suite = unittest.TestSuite()
for c in (T, A):
    suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(c))
res = unittest.TextTestRunner(stream=out, verbosity=2).run(suite)
print(res.testsRun, len(res.failures), len(res.errors), len(res.skipped), len(res.expectedFailures), res.wasSuccessful())
print([l for l in out.getvalue().splitlines() if " ... " in l])
print(log[:3], len(log))
m = mock.Mock(return_value=3, name="m")
print(m(1, k=2), m.call_args, m.called, m.call_count, mock.call(1) == mock.call(1))
mm = mock.MagicMock()
mm.a.b.return_value = "deep"
mm.__len__.return_value = 9
print(mm.a.b(), len(mm))
m.side_effect = [1, ValueError("second")]
print(m())
try:
    m()
except ValueError as e:
    print(e)
try:
    m.assert_called_once()
except AssertionError as e:
    print(str(e).splitlines()[0])
with mock.patch("math.pi", 3):
    import math

    print(math.pi)
print(math.pi)
with mock.patch.dict({"a": 1}) as d, mock.patch.object(T, "shared", "patched"):
    print(T.shared)
