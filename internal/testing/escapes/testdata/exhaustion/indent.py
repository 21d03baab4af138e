# indents JSON by ten million spaces
# harm: grows
# ends: variously
import json
x = json.dumps([1] * 200, indent=10_000_000)
