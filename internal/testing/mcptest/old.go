package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// beOld runs a server of the first generation, which logs to stdout between its messages.
func beOld() error {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("Server running on stdio")
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}

		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}

		answer := `"error":{"code":-32601,"message":"unknown method"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},` +
				`"serverInfo":{"name":"old","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[{"name":"texts","inputSchema":{"type":"object"}},` +
				`{"name":"value","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			fmt.Printf("INFO called %s\n\n{\"level\":\"debug\",\"request\":%s}\n[1, 2]\n",
				m.Params.Name, line[:len(line)-1])
			result := `{"content":[{"type":"text","text":"n is 7"}]}`
			if m.Params.Name == "value" {
				result = `{"n":7}`
			}
			answer = `"result":{"toolResult":` + result + `}`
		}
		if m.ID != nil {
			fmt.Printf("\uFEFF"+`{"jsonrpc":"2.0","id":%s,%s}`+"\r\n", m.ID, answer)
		}
	}
}
