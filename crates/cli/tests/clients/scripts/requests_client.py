"""Asks with requests for what stands in the JSON on standard input, one after the other.

Prints status and fields of the answers as JSON; each body goes to the file that is named for it. The argument is the certificate to trust.
"""

import json
import sys

import requests

PATIENCE_S = 60

session = requests.Session()
# Nothing from its user's environment: proxies, other certificates.
session.trust_env = False
session.verify = sys.argv[1]
answers = []
for ask in json.load(sys.stdin):
    response = session.request(
        ask["method"], ask["url"], headers=ask["fields"], timeout=PATIENCE_S, allow_redirects=False
    )
    with open(ask["body_file"], "wb") as file:
        file.write(response.content)
    answers.append({"status": response.status_code, "fields": dict(response.headers)})
print(json.dumps(answers))
