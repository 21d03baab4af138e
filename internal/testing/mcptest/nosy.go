package mcptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// message is a message of the protocol.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
	Error struct {
		Code int `json:"code"`
	} `json:"error"`
	Result struct {
		Roots []any `json:"roots"`
	} `json:"result"`
}

// beNosy runs a server of an earlier generation, in which servers send their own requests. Its tool
// ask returns whether it received errors, and the number of roots. Its tool pester sends requests
// endlessly, and ignores the answers.
func beNosy() error {
	in := bufio.NewReader(os.Stdin)
	read := func() (m message, err error) {
		line, err := in.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &m)
		}
		return m, err
	}

	for {
		m, err := read()
		if err != nil {
			return err
		}
		answer := `"error":{"code":-32601,"message":"unknown method"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
				`"serverInfo":{"name":"nosy","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}},` +
				`{"name":"pester","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			if m.Params.Name == "pester" {
				return pester()
			}
			got := ""
			for i, request := range []string{
				`"sampling/createMessage","params":{"messages":[],"maxTokens":10}`,
				`"elicitation/create","params":{"message":"your password?","requestedSchema":{"type":"object"}}`,
				`"roots/list"`,
			} {
				fmt.Printf(`{"jsonrpc":"2.0","id":"nosy-%d","method":%s}`+"\n", i, request)
				m, err := read()
				if err != nil {
					return err
				}
				got += fmt.Sprintf("%t %d ", m.Error.Code < 0, len(m.Result.Roots))
			}
			answer = fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, got)
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
		}
	}
}

// pester sends requests until the client disconnects.
func pester() error {
	for i := 0; ; i++ {
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i); err != nil {
			return err
		}
	}
}
