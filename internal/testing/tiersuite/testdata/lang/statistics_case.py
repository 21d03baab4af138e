# statistics; results that pass through C's math functions are rounded.
import statistics as st
from fractions import Fraction
from decimal import Decimal

d = [2, 4, 4, 4, 5, 5, 7, 9]
r = lambda v: round(v, 9)
print(st.mean(d), st.fmean(d), st.fmean(d, weights=range(8)), st.median(d), st.median_low(d), st.median_high(d), r(st.median_grouped(d)), st.mode(d), st.multimode("aabbc"), r(st.geometric_mean(d)), r(st.harmonic_mean(d)))
print(st.pstdev(d), r(st.stdev(d)), st.pvariance(d), r(st.variance(d)), st.quantiles(d), st.quantiles(d, n=10, method="inclusive"), st.mean([Fraction(1, 2), Fraction(1, 3)]), st.mean([Decimal("0.1"), Decimal("0.3")]), st.mean([True, False]))
x, y = [1, 2, 3, 4, 5], [2, 4, 5, 4, 5]
print(r(st.correlation(x, y)), st.covariance(x, y), [r(v) for v in st.linear_regression(x, y)], r(st.correlation(x, y, method="ranked")), st.linear_regression(x, y).slope > 0)
n = st.NormalDist(100, 15)
print(r(n.cdf(115)), r(n.pdf(100)), r(n.inv_cdf(0.975)), n + 5, n * 2, r(n.overlap(st.NormalDist(110, 15))), r(n.zscore(130)), [r(v) for v in n.quantiles(4)], n.mean, n.variance, st.NormalDist.from_samples([1, 2, 3]))
for bad in (lambda: st.mean([]), lambda: st.median([]), lambda: st.stdev([1]), lambda: st.mode([]), lambda: st.mean(["a"]), lambda: st.quantiles([1]), lambda: st.geometric_mean([-1]), lambda: st.harmonic_mean([-1]), lambda: st.correlation([1], [1]), lambda: st.correlation([1, 1], [1, 2]), lambda: st.NormalDist(0, -1), lambda: st.fmean([1], weights=[0])):
    try:
        print(bad())
    except (st.StatisticsError, TypeError) as e:
        print(type(e).__name__, e)
print(st.mean([1e30, 1, -1e30]), st.mean(range(10 ** 5)), st.median_low(["a", "c", "b"]), st.mode(["x", "y", "x"]), st.pvariance([1, 1]), st.kde([1, 2, 3], h=1.0)(2) > 0)
