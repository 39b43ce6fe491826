package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tendril-agent/tendril/internal/catalog"
	"github.com/tendril-agent/tendril/internal/config"
	"github.com/tendril-agent/tendril/internal/terminal"
)

func (c *command) modelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "See which models there are, and what they cost",
		Long: `See which models there are, how much they can read, and what they cost.

Exit codes: 0 done, 2 usage, 3 settings or no model set up, 4 Ollama does not answer.`,
	}
	list := &cobra.Command{
		Use: "list [provider]", Short: "List the models of a provider (default: of the one that a run would use)", Args: takes(0, 1),
		Long: `List the models of a provider: for Ollama those that are pulled; for OpenRouter, Gemini, Azure and compatible
endpoints those that the server lists, when there is a key; else those of the catalogue in this program.
Context sizes and prices are those that Tendril counts with: from model.prices and contextWindow in the
settings, else from the catalogue. A – is not known. The chosen model is marked with ▸.`,
		Example: "  tendril model list\n  tendril model list openrouter\n  tendril model list ollama --json",
		RunE:    func(cmd *cobra.Command, args []string) error { return c.modelList(cmd.Context(), args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return config.Providers(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.group(cmd).AddCommand(list)
	return cmd
}

// completeModel completes the value of --model from the catalogue.
func completeModel(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	provider, _, named := strings.Cut(typed, "/")
	if !named {
		names := []string{config.Demo}
		for _, p := range config.Providers() {
			names = append(names, p+"/")
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	var names []string
	for _, m := range catalog.Models(provider) {
		names = append(names, provider+"/"+m.ID)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (c *command) modelList(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == config.Demo {
		return c.demoPrompts()
	}
	if len(args) > 0 && !config.IsProvider(args[0]) {
		return usageError("%w", noProvider(args[0]))
	}
	cfg, _, err := c.settings()
	if err != nil {
		return err
	}
	o, err := c.offered(ctx, cfg, strings.Join(args, ""))
	if err != nil {
		return err
	}
	if c.json {
		return writeJSON(c.Out, o)
	}
	if o.Warning != "" {
		c.warn("%s", o.Warning)
	}
	c.showOffer(o)
	return nil
}

func noProvider(name string) error {
	return fmt.Errorf("%q is no provider; there are %s", clip(name, 40), strings.Join(config.Providers(), ", "))
}

// offered finds what a provider offers, or the one that a run would use ("").
func (c *command) offered(ctx context.Context, cfg *config.Config, provider string) (offer, error) {
	choice, _, err := c.choose(ctx, cfg, "")
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case provider != "" && (err != nil || choice.Provider != provider):
		choice = config.Endpoint(cfg, provider, c.lookup(ctx))
	case err != nil:
		return offer{}, err
	}
	o, err := c.models(ctx, cfg, choice)
	if ctx.Err() != nil {
		return offer{}, ctx.Err()
	}
	if err != nil {
		return offer{}, err
	}
	o.choose(cfg, choice.Model)
	return o, nil
}

// priceColumn is where showOffer has the prices.
const priceColumn = 3

// showOffer prints the models as a table, without the columns about which
// nothing is known.
func (c *command) showOffer(o offer) {
	if len(o.Models) == 0 {
		c.print("no models %s\n", o.from())
		return
	}
	table := [][]string{{"model", "size", "context", "input / output", "cache read", "tools"}}
	for _, m := range o.Models {
		table = append(table, []string{
			clip(terminal.Line(m.Model), 80), optional(m.Size, bytesText), optional(m.Context, tokensText),
			inOutText(m.Input, m.Output), optional(m.CacheRead, usd), optional(m.Tools, yesNo),
		})
	}
	widths := columnWidths(table)
	marks := style{color: terminal.ColorEnabled(c.Getenv, c.OutTTY)}
	for i, row := range table {
		mark := " "
		if i > 0 && o.Models[i-1].Chosen {
			mark = marks.run(">")
		}
		var line strings.Builder
		for n, cell := range row {
			if widths[n] > 0 {
				line.WriteString("  " + cell + strings.Repeat(" ", widths[n]-utf8.RuneCountInString(cell)))
			}
		}
		c.printRaw(mark)
		c.print("%s\n", strings.TrimRight(line.String(), " ")[1:])
	}
	unit := ""
	if widths[priceColumn] > 0 {
		unit = "; prices in USD for a million tokens"
	}
	c.print("\n%s%s\nchoose one: tendril run --model %s/… or, for all runs, tendril setup --model %s/…\n", o.from(), unit, o.Provider, o.Provider)
}

// from says where the list comes from.
func (o offer) from() string {
	switch {
	case o.Source == catalogueSource:
		return "from the catalogue in this program"
	case o.Provider == config.Azure:
		return "from " + o.Source + ", which names models; choose by the name of your deployment"
	}
	return "from " + o.Source
}

// columnWidths is 0 for a column that says nothing.
func columnWidths(table [][]string) []int {
	widths := make([]int, len(table[0]))
	for n := range widths {
		says, width := false, 0
		for i, row := range table {
			says = says || i > 0 && row[n] != unknown
			width = max(width, utf8.RuneCountInString(row[n]))
		}
		if says {
			widths[n] = width
		}
	}
	return widths
}

// unknown stands in a table for what is not known.
const unknown = "–"

func optional[T any](v *T, text func(T) string) string {
	if v == nil {
		return unknown
	}
	return text(*v)
}

func inOutText(input, output *float64) string {
	if input == nil && output == nil {
		return unknown
	}
	return optional(input, usd) + " / " + optional(output, usd)
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// usd is an amount with at least two decimals, and more where it has them.
func usd(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if _, decimals, _ := strings.Cut(s, "."); len(decimals) < 2 {
		s = fmt.Sprintf("%.2f", v)
	}
	return "$" + s
}

// tokensText is a number of tokens as people say it: 128k, 1M.
func tokensText(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	s := strings.TrimRight(fmt.Sprintf("%.2f", float64(n)/1e6), "0")
	return strings.TrimSuffix(s, ".") + "M"
}

// bytesText is the size of a file.
func bytesText(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
