// What the settings of a provider are called, and what they look like.

interface Label {
  label: string
  placeholder: string
  help?: string
}

const usual: Record<string, Label> = {
  region: { label: 'Region', placeholder: 'us-east-1', help: 'The credentials are those of the AWS tools: the environment, a profile, or a role of this machine.' },
  profile: { label: 'AWS profile', placeholder: 'default', help: 'Empty: as AWS chooses.' },
  host: { label: 'Server', placeholder: 'http://localhost:11434' },
  baseURL: { label: 'Base URL', placeholder: 'https://NAME.openai.azure.com/openai/v1' },
  modelId: { label: 'Model', placeholder: 'name of a model' },
}

const special: Record<string, Record<string, Label>> = {
  azure: { modelId: { label: 'Deployment', placeholder: 'my-deployment', help: 'The name that you gave it, not that of its model.' } },
  bedrock: { modelId: { label: 'Model', placeholder: 'us.anthropic.claude-sonnet-4-6', help: 'A model or an inference profile.' } },
  compatible: {
    baseURL: { label: 'Base URL', placeholder: 'http://localhost:1234/v1', help: 'Of LM Studio, llama.cpp, vLLM, a gateway, or any other server that speaks OpenAI’s API.' },
    modelId: { label: 'Model', placeholder: 'as the endpoint names it' },
  },
}

/** The label of a setting of a provider, or of the way compatible. */
export const labels = (provider: string, setting: string): Label => special[provider]?.[setting] ?? usual[setting] ?? { label: setting, placeholder: '' }

/** Where a provider's keys are made. */
export const keyPages: Record<string, string> = {
  anthropic: 'https://console.anthropic.com/settings/keys',
  openai: 'https://platform.openai.com/api-keys',
  gemini: 'https://aistudio.google.com/apikey',
  openrouter: 'https://openrouter.ai/settings/keys',
}
