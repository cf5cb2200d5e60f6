"""A scheduler extender to start from: only the standard library, both filter and prioritize.

A pod with the label `disk` goes to nodes whose label `disk` says the same; of them, those with `rack` as the pod has it
are preferred. `python examples/extender/extender.py --port 8888`, and under `extenders:` of the configuration:

    - {urlPrefix: "http://127.0.0.1:8888", filterVerb: filter, prioritizeVerb: prioritize, weight: 1}

It is sent whole nodes (`nodeCacheCapable: false`) and answers `Nodes`, which kube-scheduler scores as nodes without
pods. One that knows the nodes itself sets `nodeCacheCapable: true`, and reads and answers `NodeNames`.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def labels_of(manifest):
    return manifest["metadata"].get("labels") or {}


def answer_filter(args):
    """ExtenderFilterResult: the nodes that may stay, and why the others may not."""
    wanted = labels_of(args["Pod"]).get("disk")
    failed = {}
    for node in args["Nodes"]["items"]:
        has = labels_of(node).get("disk")
        if wanted is not None and has != wanted:
            failed[node["metadata"]["name"]] = f"disk is {has}, not {wanted}"
    left = [node for node in args["Nodes"]["items"] if node["metadata"]["name"] not in failed]
    return {"Nodes": {"items": left}, "FailedNodes": failed, "Error": ""}


def answer_prioritize(args):
    """HostPriorityList: 0 to 10 points for each node, which the scheduler multiplies by the weight and by 10."""
    rack = labels_of(args["Pod"]).get("rack")
    return [
        {
            "Host": node["metadata"]["name"],
            "Score": 10 if rack is not None and labels_of(node).get("rack") == rack else 0,
        }
        for node in args["Nodes"]["items"]
    ]


ANSWERS = {"/filter": answer_filter, "/prioritize": answer_prioritize}


class Extender(BaseHTTPRequestHandler):
    """Answers POSTs; anything but 200 is an error to the scheduler."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = ANSWERS.get(self.path)
        data = json.dumps(answer(json.loads(body)) if answer else {}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    parser = argparse.ArgumentParser(description="An extender to start from.")
    parser.add_argument("--port", type=int, default=8888)
    server = ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Extender)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
