n=0
for r in range(30):
    l=[{'a':i,'b':str(i)} for i in range(100000)]
    n+=len(l)
print(n)
