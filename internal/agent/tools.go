package agent

import (
	_ "embed" // the texts and schemas
)

var (
	//go:embed text/list.md
	listText string
	//go:embed text/list.json
	listSchema []byte
	//go:embed text/register.md
	registerText string
	//go:embed text/register.json
	registerSchema []byte
	//go:embed text/execute.md
	executeText string
	//go:embed text/execute.json
	executeSchema []byte
)
