# becomes root with setuid(0)
# root: nobody else can
# with: syscall
os.setuid(0)
print(CANARY_PROOF)
