"""initialize.py COMMAND...: starts a language server, opens two files in it as an editor
does, and prints what it answers: its capabilities, then the diagnostics of each file."""

import json
import subprocess
import sys

VALID = """func.func @f(%out: tensor<?x4x64xf32>, %lse: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %0:2 = varlen.merge %out, %lse, %out, %lse
      : (tensor<?x4x64xf32>, tensor<4x?xf32>, tensor<?x4x64xf32>, tensor<4x?xf32>)
      -> (tensor<?x4x64xf32>, tensor<4x?xf32>)
  return %0#1 : tensor<4x?xf32>
}
"""
INVALID = VALID.replace("4x?", "3x?")


def message(method, number=None, **parameters):
    fields = {"jsonrpc": "2.0", "method": method, "params": parameters}
    if number is not None:
        fields["id"] = number
    body = json.dumps(fields)
    return f"Content-Length: {len(body)}\r\n\r\n{body}".encode()


def document(name, text):
    item = {"uri": f"file:///{name}.mlir", "languageId": "mlir", "version": 1, "text": text}
    return message("textDocument/didOpen", textDocument=item)


def split(data):
    """The messages in a stream."""
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        size = int(head.split(b"Content-Length:")[1].split()[0])
        yield json.loads(data[:size])
        data = data[size:]


def main():
    sent = (
        message("initialize", 1, processId=None, rootUri=None, capabilities={})
        + message("initialized")
        + document("valid", VALID)
        + document("invalid", INVALID)
        + message("shutdown", 2)
        + message("exit")
    )
    done = subprocess.run(sys.argv[1:], input=sent, stdout=subprocess.PIPE, check=False, timeout=60)
    for answer in split(done.stdout):
        if answer.get("id") == 1:
            print("capabilities", json.dumps(answer["result"]["capabilities"], sort_keys=True))
        elif answer.get("method") == "textDocument/publishDiagnostics":
            of = answer["params"]
            print(of["uri"], [entry["message"] for entry in of["diagnostics"]])
    print("status", done.returncode)


main()
