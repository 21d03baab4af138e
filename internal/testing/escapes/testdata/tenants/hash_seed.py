# plans collisions in the dicts of another tenant, because both have the same hash seed
# open: wasm
# env: PYTHONHASHSEED=7
print(hash('the hash seed'))
# in another sandbox
print(CANARY_PROOF if hash('the hash seed') == int(CANARY_SAID) else 0)
