import numpy as np
a=np.ones(2_000_000); t=0.0
for r in range(150): t+=float((a*2+a).sum())
print(t)
