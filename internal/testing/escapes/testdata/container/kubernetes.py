# reads the token of an orchestrator
# unsafe: there is none
print(CANARY_PROOF if open('/var/run/secrets/kubernetes.io/serviceaccount/token').read() else 0)
