/** Completion scripts for shells, made from the tables of the commands. */
import { type Command, commonOptions, optionsOf, type OptionSpecs } from "./command.ts";

/** For each shell: its script. */
export const completions: Readonly<Record<string, (commands: readonly Command[]) => string>> = {
  bash,
  zsh,
  fish,
};

function words(command: Command): string {
  const options = Object.entries(optionsOf(command)).map(([name]) => `--${name}`);
  return [...(command.choices ?? []), ...options].join(" ");
}

/** Options whose value follows as the next word. */
function valueOptions(commands: readonly Command[]): readonly string[] {
  const all: OptionSpecs = Object.assign({}, ...commands.map(optionsOf));
  return Object.entries(all).flatMap(([name, { value }]) => (value === undefined ? [] : [`--${name}`]));
}

function bash(commands: readonly Command[]): string {
  const cases = commands.map((command) => `    ${command.name}) words="${words(command)}" ;;`);
  return `# Completion of holdfast for bash: source <(holdfast completion bash)
_holdfast() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command= words= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      --)
        # What follows is a command line of its own.
        if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); return; fi
        if ((COMP_CWORD == i + 1)); then COMPREPLY=($(compgen -c -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi
        return ;;
      ${valueOptions(commands).join("|")}) ((i++)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=\${COMP_WORDS[i]}; fi ;;
    esac
  done
  case $prev in ${valueOptions(commands).join("|")}) return ;; esac
  case $command in
    "") words="${commands.map(({ name }) => name).join(" ")} --help --version" ;;
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _holdfast holdfast
`;
}

function zsh(commands: readonly Command[]): string {
  const described = commands.map(({ name, summary }) => `    ${single(`${name}:${summary}`)}`);
  const cases = commands.map((command) => {
    const specs = Object.entries(optionsOf(command)).map(([name, spec]) => {
      const help = spec.help.replace(/[[\]:]/g, "\\$&");
      return single(`--${name}[${help}]${spec.value === undefined ? "" : `:${spec.value}:`}`);
    });
    const first = command.choices === undefined ? [] : [single(`1:choice:(${command.choices.join(" ")})`)];
    const rest = command.runsCommand === true ? [single("1:name:")] : [];
    return `    ${command.name}) _arguments -s ${[...first, ...rest, ...specs].join(" ")} ;;`;
  });
  return `#compdef holdfast
# Completion of holdfast for zsh: holdfast completion zsh > ~/.zfunc/_holdfast
_holdfast() {
  # Not called commands: that is zsh's own table of programs.
  local -a tasks
  local command= i
  tasks=(
${described.join("\n")}
  )
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
      --)
        # What follows is a command line of its own.
        shift $i words
        ((CURRENT -= i))
        _normal
        return ;;
      ${valueOptions(commands).join("|")}) ((i++)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=$words[i]; words[i]=(); ((CURRENT--, i--)); fi ;;
    esac
  done
  # A value is being typed.
  if ((i > CURRENT)); then return; fi
  case $command in
    "") _describe command tasks ;;
${cases.join("\n")}
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function fish(commands: readonly Command[]): string {
  const names = commands.map(({ name }) => name).join(" ");
  const lines = [
    "# Completion of holdfast for fish: holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
    "complete -c holdfast -f",
    ...optionLines(commonOptions, ""),
    ...commands.flatMap((command) => {
      const seen = `-n '__fish_seen_subcommand_from ${command.name}' `;
      const first = `complete -c holdfast -n 'not __fish_seen_subcommand_from ${names}' `;
      return [
        `${first}-a ${command.name} -d ${single(command.summary)}`,
        ...(command.choices ?? []).map((choice) => `complete -c holdfast ${seen}-a ${choice}`),
        ...(command.runsCommand === true
          ? [`complete -c holdfast ${seen}-a '(__fish_complete_command)'`]
          : []),
        ...optionLines(command.options, seen),
      ];
    }),
  ];
  return `${lines.join("\n")}\n`;
}

function optionLines(specs: OptionSpecs, condition: string): readonly string[] {
  return Object.entries(specs).map(([name, { value, short, help }]) => {
    const letter = short === undefined ? "" : ` -s ${short}`;
    return `complete -c holdfast ${condition}-l ${name}${letter}${value === undefined ? "" : " -x"} -d ${single(help)}`;
  });
}

/** A word in single quotes. */
function single(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
