# pymalloc arenas come and go: all small objects of a phase are dropped together
n=0
for r in range(150):
    l=[(i,r) for i in range(60000)]
    n+=len(l); del l
print(n)
