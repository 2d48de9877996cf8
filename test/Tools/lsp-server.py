# RUN: %python %s varlen-lsp-server

"""The language server, as editors call it: what it says of a mistake, of what is under the
cursor, and of what may follow."""

import json
import subprocess
import sys

TEXT = """func.func @attention(%q: tensor<?x8x64xf32>, %cu: tensor<?xi32>) -> tensor<?x8x64xf32> {
  %out, %lse = varlen.attn %q, %q, %q, %cu, %cu {mask = #varlen.mask<causal>}
      : (tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?x8x64xf32>, tensor<?xi32>, tensor<?xi32>)
      -> (tensor<?x8x64xf32>, tensor<8x?xf32>)
  return %out : tensor<?x8x64xf32>
}
"""
URI = "file:///attention.mlir"


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0

    def send(self, method, params, **more):
        text = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, params):
        self.count += 1
        self.send(method, params, id=self.count)
        while (message := self.receive()).get("id") != self.count:
            pass
        return message["result"]

    def diagnose(self, method, document, **more):
        self.send(method, {"textDocument": {"uri": URI, **document}, **more})
        while (message := self.receive()).get("method") != "textDocument/publishDiagnostics":
            pass
        return message["params"]["diagnostics"]


server = Server(sys.argv[1])
abilities = server.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
assert abilities["capabilities"]["hoverProvider"], abilities
server.send("initialized", {})

wrong = TEXT.replace("<causal>", "<casual>")
found = server.diagnose("textDocument/didOpen", {"languageId": "mlir", "version": 1, "text": wrong})
assert found[0]["range"]["start"]["line"] == 1 and "casual" in found[0]["message"], found
change = [{"text": TEXT.replace("tensor<8x?xf32>", "tensor<4x?xf32>")}]
found = server.diagnose("textDocument/didChange", {"version": 2}, contentChanges=change)
assert found and "varlen.attn" in found[0]["message"], found
found = server.diagnose("textDocument/didChange", {"version": 3}, contentChanges=[{"text": TEXT}])
assert found == [], found

at = {
    "textDocument": {"uri": URI},
    "position": {"line": 1, "character": TEXT.split("\n")[1].index("attn")},
}
hover = server.ask("textDocument/hover", at)
assert "varlen.attn" in hover["contents"]["value"], hover
definition = server.ask("textDocument/definition", {**at, "position": {"line": 4, "character": 10}})
assert definition[0]["range"]["start"]["line"] == 1, definition

server.diagnose("textDocument/didChange", {"version": 4}, contentChanges=[{"text": "varlen."}])
after = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 7}}
labels = {item["label"] for item in server.ask("textDocument/completion", after)["items"]}
assert {"attn", "attn_grad", "merge"} <= {label.removeprefix("varlen.") for label in labels}, labels

server.ask("shutdown", None)
server.send("exit", None)
assert server.process.wait(timeout=60) == 0

# The server's own options, not all of LLVM's.
options = subprocess.run([sys.argv[1], "--help"], capture_output=True, text=True, check=True).stdout
assert "--log=" in options and "--version" in options and "--aarch64" not in options, options
