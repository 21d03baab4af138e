# warns forever, of something else each time
# harm: floods
import itertools, warnings
for i in itertools.count(): warnings.warn(f'flood {i} ' * 100)
