# reads the service token of Kubernetes
# unsafe: there is none
print(CANARY_PROOF if open('/var/run/secrets/kubernetes.io/serviceaccount/token').read() else 0)
