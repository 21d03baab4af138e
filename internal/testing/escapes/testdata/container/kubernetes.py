# reads the service token of Kubernetes
# fake: /var/run/secrets/ kubernetes.io/serviceaccount/token
print(CANARY_PROOF if open('/var/run/secrets/kubernetes.io/serviceaccount/token').read() else 0)
