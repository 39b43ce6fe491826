package host

import "github.com/danielgtaylor/huma/v2"

// Services are what the app shows and changes beside conversations.
type Services struct{}

// SetupProgress is news of something that the app fetches.
type SetupProgress struct {
	Step  string `json:"step" enum:"deno"`
	State string `json:"state" enum:"running,done,failed"`
	Text  string `json:"text"`
	Done  int64  `json:"done,omitempty" doc:"Bytes"`
	Total int64  `json:"total,omitempty" doc:"Bytes; left out when not known"`
}

func (h *Host) servicesAPI(huma.API) {}
