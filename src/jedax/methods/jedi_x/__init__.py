"""JEDi-X: evolution strategies (ES) that maximise fitness and, while they stagnate, scouts and variation.

| step of a generation | code |
|---|---|
| choose the kind of generation: exploration is likelier the longer the pool stagnates | `JEDiX.choose_kind` |
| pool: sample the ES that started from the fittest elites | `JEDiX.ask` (`jedax.es`) |
| scouts: sample the small ES that started from random elites | `JEDiX.ask` (`jedax.es`) |
| variation: vary random elites | `JEDiX.vary` (`jedax.variation`) |
| update the repertoire | `JEDiX.tell` (`jedax.repertoire`) |
| update the ES; restart an ES that stagnates and a scout that adds nothing to the repertoire | `Restarting` |
| or, where policies are large: one scout races against the only ES of the pool | `Racing` (`jedax.es.race`) |
| and policy gradients also move the mean of the ES there | `Racing` (`jedax.rl.ppo`) |

JEDi-X has no targets: scouts and variation explore, the pool exploits. results/beyond/rejected.md describes the
alternatives that were tried.
"""

from jedax.methods.jedi_x.config import JediXConfig as JediXConfig
from jedax.methods.jedi_x.method import POOL as POOL
from jedax.methods.jedi_x.method import SCOUTS as SCOUTS
from jedax.methods.jedi_x.method import VARIATION as VARIATION
from jedax.methods.jedi_x.method import JEDiX as JEDiX
